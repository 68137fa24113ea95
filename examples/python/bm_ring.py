"""Big Memory of MemFabric: ranks in a ring.

Every rank writes into the slot of the next one and reads what the previous one has written into its
own, from and to host memory (H) and device memory (L; the host where there is no device).
"""

import ctypes
import multiprocessing
import socket

import mf_smem
from mf_smem import bm, shm

RANKS, SIZE = 4, 4096
SLOT = 4 << 20


def ring(pool, everybody, rank, out, back, offset):
    mine = ctypes.create_string_buffer(bytes([rank + 1]) * SIZE, SIZE)
    got = ctypes.create_string_buffer(SIZE)
    pool.copy_data(ctypes.addressof(mine), pool.peer_rank_ptr((rank + 1) % RANKS) + offset, SIZE,
                   out)
    everybody.barrier()
    pool.copy_data(pool.peer_rank_ptr(rank) + offset, ctypes.addressof(got), SIZE, back)
    assert got.raw == bytes([(rank - 1) % RANKS + 1]) * SIZE


def work(store):
    mf_smem.initialize()
    config = bm.BmConfig()
    config.auto_ranking = True  # and whoever can listen there serves the store
    bm.initialize(store, RANKS, 0, config)
    rank = bm.bm_rank_id()
    pool = bm.create(id=0, local_dram_size=0, local_hbm_size=SLOT)
    assert pool.join() == pool.peer_rank_ptr(0) + rank * SLOT

    config = shm.ShmConfig()
    config.start_store = False  # it is there
    shm.initialize(store, RANKS, rank, 0, config)
    everybody = shm.create(id=0, rank_size=RANKS, rank_id=rank, local_mem_size=2 << 20)

    everybody.barrier()
    ring(pool, everybody, rank, bm.BmCopyType.H2G, bm.BmCopyType.G2H, 0)
    ring(pool, everybody, rank, bm.BmCopyType.L2G, bm.BmCopyType.G2L, SIZE)
    everybody.barrier()  # others may still read
    mf_smem.uninitialize()


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as probe:
        store = "tcp://127.0.0.1:%d" % probe.getsockname()[1]
    workers = [multiprocessing.Process(target=work, args=(store,)) for _ in range(RANKS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0] * RANKS
    print("{} ranks passed bytes around in four directions".format(RANKS))
