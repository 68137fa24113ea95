"""Ranks that are forked before anything is initialized, and write into each other's slots in a ring.

    memfabric_ring.py mf_smem|memfabric_hybrid URL RANKS explicit|auto

Ends with 0 when every rank has found what it should.
"""

import ctypes
import os
import sys
import threading

from plain_memory import Buffer

SLOT, PART = 4 << 20, 4096
PIPE = os.pipe()  # of all ranks: they are forked


def pattern(rank, salt):
    return bytes((rank * 31 + salt * 7 + i) % 251 for i in range(PART))


def around(pool, barrier, rank, ranks, copy_types):
    """One pass for each pair of types: write to the next rank, read what the previous one wrote."""
    for salt, (out, back) in enumerate(copy_types):
        sent, got = Buffer(pattern(rank, salt)), Buffer(bytes(PART))
        following = pool.peer_rank_ptr((rank + 1) % ranks) + salt * PART
        assert not pool.copy_data(sent.address, following, PART, out)
        barrier()
        assert not pool.copy_data(pool.peer_rank_ptr(rank) + salt * PART, got.address, PART, back)
        assert got.content == pattern((rank - 1) % ranks, salt)


def start(package, url, ranks, rank):
    """(our rank, the pool, the object), for both packages: in one the checks are superfluous."""
    assert package.initialize() == 0
    config = package.bm.BmConfig()
    config.auto_ranking = rank is None
    config.rank_id = -1 if rank is None else rank
    assert package.bm.initialize(url, ranks, 0, config) == 0
    rank = package.bm.bm_rank_id()
    pool = package.bm.create(id=0, local_dram_size=0, local_hbm_size=SLOT)
    joined = pool.join()
    assert joined == (pool.peer_rank_ptr(rank) if package.__name__ == "mf_smem" else 0)
    assert pool.peer_rank_ptr(rank) == pool.peer_rank_ptr(0) + rank * SLOT
    assert pool.local_mem_size() == SLOT
    config = package.shm.ShmConfig()
    config.start_store = False
    assert package.shm.initialize(url, ranks, rank, 0, config) == 0
    memory = package.shm.create(id=0, rank_size=ranks, rank_id=rank, local_mem_size=2 << 20)
    return rank, pool, memory


def work(package, url, ranks, given_rank):
    rank, pool, memory = start(package, url, ranks, given_rank)

    def barrier():
        assert not memory.barrier()

    barrier()
    types = package.bm.BmCopyType
    around(pool, barrier, rank, ranks, [(types.H2G, types.G2H), (types.L2G, types.G2L)])
    assert (memory.local_rank, memory.rank_size) == (rank, ranks)
    assert not memory.set_context(b"for the device")
    gathered = memory.all_gather(bytearray([rank, 255 - rank]))
    assert gathered == bytes(n for r in range(ranks) for n in (r, 255 - r))
    ctypes.memset(memory.gva + rank * (2 << 20), rank + 1, 1)
    barrier()
    seen = [ctypes.string_at(memory.gva + r * (2 << 20), 1)[0] for r in range(ranks)]
    assert seen == [r + 1 for r in range(ranks)]
    if package.__name__ == "memfabric_hybrid":
        later(package, pool, memory, barrier, rank, ranks)
    waits_without_the_gil(memory)
    barrier()
    assert not pool.leave()
    package.uninitialize()


def later(package, pool, memory, barrier, rank, ranks):
    """What only the later interface has."""
    bm = package.bm
    following = (rank + 1) % ranks
    target = pool.peer_rank_ptr(following) + (1 << 20)
    assert pool.get_rank_id_by_gva(target) == following
    parts = [Buffer(pattern(rank, salt)) for salt in range(3)]
    assert pool.register(parts[0].address, PART) == 0
    addresses = [part.address for part in parts]
    places = [target + n * PART for n in range(3)]
    assert pool.copy_data_batch(addresses, places, [PART] * 3, 3, bm.BmCopyType.AUTO, 1) == 0
    assert pool.wait() == 0
    assert pool.unregister(parts[0].address) == 0
    barrier()
    got = Buffer(bytes(3 * PART))
    own = pool.peer_rank_ptr(rank, bm.BmMemType.DEVICE) + (1 << 20)
    assert pool.copy_data(own, got.address, 3 * PART, bm.BmCopyType.AUTO) == 0
    assert got.content == b"".join(pattern((rank - 1) % ranks, salt) for salt in range(3))
    reach = [0]
    assert memory.topology_can_reach(following, reach) == 0
    assert reach == [package.shm.ShmDataOpType.MTE]
    assert memory.query_support_data_operation() & package.shm.ShmDataOpType.MTE


def waits_without_the_gil(memory):
    """A barrier to which the others come only when another thread of rank 0 has let them."""
    if memory.local_rank != 0:
        assert os.read(PIPE[0], 1) == b"x"
        memory.barrier()
        return
    waiting = threading.Event()

    def let_them_come():
        waiting.wait()
        os.write(PIPE[1], b"x" * (memory.rank_size - 1))

    other = threading.Thread(target=let_them_come)
    other.start()
    waiting.set()
    memory.barrier()
    other.join()


def main(name, url, ranks, how):
    package = __import__(name)
    children = []
    for rank in range(int(ranks)):
        child = os.fork()
        if child == 0:
            work(package, url, int(ranks), None if how == "auto" else rank)
            sys.exit(0)
        children.append(child)
    return sum(os.waitpid(child, 0)[1] != 0 for child in children)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
