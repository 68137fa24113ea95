"""Three ranks exchange parts of their arrays, whatever memory each of them uses.

Rank 0 has its buffer in CPU memory, the others on their accelerator if they have one: HMC finds a
path between each pair. In a program that `hmc pool run`, torchrun, mpirun or srun has started,
init_group(session=session) is enough.
"""

import multiprocessing
import tempfile

import numpy

import hmc
from hmc import collective

WORLD, PART = 3, 100_000


def member(rank, store):
    kind = hmc.MemoryType.CPU if rank == 0 else hmc.MemoryType.DEFAULT
    session = hmc.create_session(mem_type=kind, buffer_size=8 << 20)
    group = collective.init_group(session=session, rank=rank, world=WORLD, store=store)

    # Part i goes to rank i; its values tell which rank sent it.
    send = numpy.repeat(numpy.arange(WORLD), PART) + 100 * rank
    received = numpy.empty_like(send)
    collective.alltoall(group, send, received, timeout=60)
    assert (received.reshape(WORLD, PART) == 100 * numpy.arange(WORLD)[:, None] + rank).all()

    total = numpy.full(PART, rank + 1.0)
    collective.allreduce(group, total, timeout=60)
    assert (total == WORLD * (WORLD + 1) / 2).all()
    collective.barrier(group, timeout=60)
    if rank == 0:
        print("{} ranks exchanged {} bytes each".format(WORLD, send.nbytes))


if __name__ == "__main__":
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder, spawn.Pool(WORLD) as pool:
        arguments = [(rank, "unix://{}/store".format(folder)) for rank in range(WORLD)]
        pool.starmap_async(member, arguments, chunksize=1).get(120)
