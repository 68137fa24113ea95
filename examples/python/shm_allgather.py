"""Share Memory of MemFabric: everyone tells everyone its process id, in two ways.

Once with an allgather, and once through the memory itself: on one host every slot is mapped, so
that a rank writes into its own and reads from all the others.
"""

import ctypes
import multiprocessing
import os
import socket

import mf_smem
from mf_smem import shm

RANKS, SLOT = 4, 2 << 20


def work(store, rank):
    mf_smem.initialize()
    shm.initialize(store, RANKS, rank, 0, shm.ShmConfig())
    memory = shm.create(id=0, rank_size=RANKS, rank_id=rank, local_mem_size=SLOT)

    mine = os.getpid().to_bytes(8, "little")
    everybody = memory.all_gather(mine)
    assert everybody[rank * 8 : rank * 8 + 8] == mine

    ctypes.memmove(memory.gva + rank * SLOT, mine, 8)
    memory.barrier()
    seen = b"".join(ctypes.string_at(memory.gva + peer * SLOT, 8) for peer in range(RANKS))
    assert seen == everybody

    memory.barrier()  # others may still read our slot
    mf_smem.uninitialize()


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as probe:
        store = "tcp://127.0.0.1:%d" % probe.getsockname()[1]
    workers = [multiprocessing.Process(target=work, args=(store, rank)) for rank in range(RANKS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0] * RANKS
    print("{} ranks know all process ids".format(RANKS))
