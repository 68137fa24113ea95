"""Collectives of several processes, at every number of them."""

import pytest

import hmc
from hmc import collective
from peers import HERE
from ranks import END, HEAD, MEET, run_all

np = pytest.importorskip("numpy")

EVERYTHING = """
import numpy as np
def check(name, ok):
    if not ok: raise AssertionError("%s at rank %d of %d" % (name, rank, world))

for turn in range(2):
    for algo in ("auto", "direct", "ring"):
        send = np.arange(world * 50, dtype=np.int32) + 1000 * rank + turn
        recv = np.zeros_like(send)
        collective.alltoall(group, send, recv, algo=algo, chunk_bytes=64)
        wanted = [np.arange(rank * 50, rank * 50 + 50) + 1000 * r + turn for r in range(world)]
        check("alltoall " + algo, (recv == np.concatenate(wanted)).all())

    for root in range(world):
        data = np.full(333, rank * 10 + turn, np.int16)
        collective.broadcast(group, data, root=root)
        check("broadcast", (data == root * 10 + turn).all())

    gathered = np.zeros((world, 7))
    collective.allgather(group, np.full(7, rank + turn / 4), gathered)
    check("allgather", (gathered == np.arange(world)[:, None] + turn / 4).all())

    for dtype in ("i8", "u1", "f4", "f2", "c16"):
        send = (np.arange(world * 5) % 7 + rank).astype(dtype)
        recv = np.zeros(5, dtype)
        collective.reduce_scatter(group, send, recv)
        base = np.arange(world * 5) % 7
        whole = sum((base + r).astype(dtype) for r in range(world))
        check("reduce_scatter " + dtype, (recv == whole[rank * 5:rank * 5 + 5]).all())
        for count in (0, 1, world - 1, 2 * world + 1):
            data = (np.arange(count) % 5 + rank).astype(dtype).reshape(1, count)
            collective.allreduce(group, data)
            wanted = sum((np.arange(count) % 5 + r).astype(dtype) for r in range(world))
            check("allreduce of %d %s" % (count, dtype), (data[0] == wanted).all())
    highest = np.array([rank, -rank])
    collective.allreduce(group, highest, op="max")
    check("max", (highest == [world - 1, 0]).all())
    collective.barrier(group)
"""
IN_TORCH = """
import torch
for dtype in (torch.bfloat16, torch.float32, torch.int64):
    data = torch.full((11,), rank + 1).to(dtype)
    collective.allreduce(group, data)
    assert (data == world * (world + 1) // 2).all(), data
    recv = torch.empty(world, dtype=dtype)
    collective.alltoall(group, torch.full((world,), rank).to(dtype), recv)
    assert recv.tolist() == list(range(world))
"""


# Through the sessions' buffers, as where they lie on an accelerator.
THROUGH_BUFFERS = "group.core = None\n"
# Into the memory that is sent, or a part of it.
IN_PLACE = """
import numpy as np
def check(name, got, wanted):
    if not (got == wanted).all(): raise AssertionError("%s at rank %d: %s" % (name, rank, got))

mine = np.arange(world * 3) + 100 * rank
collective.alltoall(group, mine, mine)
wanted = np.concatenate([np.arange(3) + 3 * rank + 100 * r for r in range(world)])
check("alltoall", mine, wanted)
kept = np.full(world * 3, -1)
collective.alltoall(group, mine, kept, do_self_copy=False)
check("alltoall without our own part", kept[rank * 3:rank * 3 + 3], -1)
for place in (rank, 0):
    whole = np.zeros((world, 5))
    whole[place] = rank + 1
    collective.allgather(group, whole[place], whole)
    check("allgather", whole, np.arange(1, world + 1)[:, None])
for place in (rank, 0):
    sent = np.arange(world * 7.0)
    collective.reduce_scatter(group, sent, sent[place * 7:place * 7 + 7])
    check("reduce_scatter", sent[place * 7:place * 7 + 7], (np.arange(7) + 7 * rank) * world)
strided = np.arange(world * 4)[::2]
collective.allgather(group, strided, np.zeros(2 * world * world, strided.dtype))
"""
LARGE = """
import numpy as np
for dtype in ("f2", "f4", "i8"):
    data = (np.arange(700001) % 50).astype(dtype) + rank
    collective.allreduce(group, data)
    assert (data == (np.arange(700001) % 50) * world + world * (world - 1) // 2).all(), dtype
"""


@pytest.mark.parametrize("world", [1, 2, 3, 4, 5, 8, 9])
def test_every_operation_is_right(world, tmp_path):
    run_all(HEAD + MEET + EVERYTHING + END, world, tmp_path)


@pytest.mark.parametrize("world", [1, 3, 9])
def test_every_operation_is_right_through_the_sessions_buffers(world, tmp_path):
    run_all(HEAD + MEET + THROUGH_BUFFERS + EVERYTHING + END, world, tmp_path)


def test_memory_that_is_sent_may_receive(tmp_path):
    run_all(HEAD + MEET + IN_PLACE + END, 3, tmp_path)


def test_arrays_may_be_larger_than_the_sessions_buffer(tmp_path):
    run_all(HEAD + MEET + LARGE + END, 3, tmp_path)


def test_operations_work_over_sockets(tmp_path):
    run_all(HEAD + MEET + EVERYTHING + END, 3, tmp_path, lambda rank: {"HMC_TRANSPORTS": "tcp"})


def test_adds_tensors(tmp_path):
    pytest.importorskip("torch")
    run_all(HEAD + MEET + IN_TORCH + END, 3, tmp_path)


def test_finds_the_members_through_torch(tmp_path):
    torch = pytest.importorskip("torch")
    if not torch.distributed.is_available():
        pytest.skip("this torch is built without torch.distributed")
    run_all(HEAD + """
import torch.distributed as dist
rank, world = int(sys.argv[1]), 2
dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=world)
group = collective.init_group(session=sess, my_ip="127.0.0.1")
assert (group.rank, group.world) == (rank, world)
""" + IN_TORCH + END, 2, tmp_path, arguments=lambda rank: (rank, tmp_path / "torch"))


def alone(size=4096):
    session = hmc.create_session(buffer_size=size)
    return collective.init_group(session=session, my_ip=HERE, rank=0, members=[
        collective.GroupMember(0, 1, HERE, 0, 0, 0)])


def member(rank):
    return collective.GroupMember(rank, 3, HERE, 1, 2, 3, hmc.MemoryType.CPU, 0, 4096)


def test_a_group_knows_its_members():
    group = collective.Group(session=None, members=[member(2), member(0), member(1)], rank=2)
    assert (group.world, group.me.rank, group.left.rank, group.right.rank) == (3, 2, 1, 0)
    assert group.peer(1) == member(1) == collective.GroupMember.from_dict(member(1).to_dict())
    assert member(1).memory_type is hmc.MemoryType.CPU
    assert (member(1).port_for(hmc.ConnType.UCX), member(1).port_for(hmc.ConnType.RDMA)) == (1, 2)
    for members, rank in [([member(0), member(0)], 0), ([member(0), member(2)], 0),
                          ([member(0)], 1)]:
        with pytest.raises(ValueError, match="rank"):
            collective.Group(session=None, members=members, rank=rank)


@pytest.mark.parametrize("call, sentence", [
    (lambda g: collective.alltoall(g, np.zeros(4), np.zeros(5)), "send has 32 bytes and recv 40"),
    (lambda g: collective.alltoall(g, b"x", bytearray(1), algo="tree"), "algo is 'tree'"),
    (lambda g: collective.alltoall(g, np.zeros(400), np.zeros(400), algo="ring"),
     "needs 6400 bytes.*has 4096"),
    (lambda g: collective.allgather(g, b"ab", bytearray(3)), "recv must have 2, not 3"),
    (lambda g: collective.broadcast(g, bytearray(1), root=1), "root is 1"),
    (lambda g: collective.reduce_scatter(g, np.zeros(3), np.zeros(2)), "send must have 16, not 24"),
    (lambda g: collective.allreduce(g, np.zeros(3), op="mean"), "op is 'mean'"),
    (lambda g: collective.allreduce(g, bytearray(8)), "no numbers to reduce"),
])
def test_says_what_is_wrong(call, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        call(alone())
