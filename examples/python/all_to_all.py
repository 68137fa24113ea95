"""Three ranks exchange parts of their arrays, whatever memory each of them uses.

Rank 0 has its buffer in CPU memory, the others on their accelerator if they have one: HMC finds a
path between each pair. With torch.distributed initialised, init_group needs no rank, world or store.
"""

import multiprocessing
import socket
import tempfile

import numpy

import hmc
from hmc import collective

HOST, WORLD, PART = "127.0.0.1", 3, 100_000


def free_ports(count):
    sockets = [socket.create_server((HOST, 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def member(rank, ports, store, folder):
    kind = hmc.MemoryType.CPU if rank == 0 else hmc.MemoryType.DEFAULT
    session = hmc.create_session(mem_type=kind, buffer_size=8 << 20, local_ip=HOST)
    group = collective.init_group(
        session=session, my_ip=HOST, port_ucx=ports[0], port_rdma=ports[1], port_ctrl=ports[2],
        ctrl_uds_dir=folder, rank=rank, world=WORLD, store="{}:{}".format(HOST, store))

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
    ports = free_ports(3 * WORLD + 1)
    with tempfile.TemporaryDirectory() as folder, spawn.Pool(WORLD) as pool:
        arguments = [(rank, ports[3 * rank : 3 * rank + 3], ports[-1], folder)
                     for rank in range(WORLD)]
        pool.starmap_async(member, arguments, chunksize=1).get(120)
