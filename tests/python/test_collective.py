"""Collectives of several processes, at every number of them."""

import concurrent.futures
import contextlib
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import hmc
from hmc import collective, rendezvous
from peers import HERE, PATIENCE, Child, free_port

np = pytest.importorskip("numpy")

HEAD = """
import sys, hmc
from hmc import collective
rank, world, ports, store, folder = (int(sys.argv[1]), int(sys.argv[2]), eval(sys.argv[3]),
                                     sys.argv[4], sys.argv[5])
sess = hmc.create_session(buffer_size=1 << 20, local_ip="127.0.0.1")
ucx, ctrl = ports[rank]
where = dict(session=sess, my_ip="127.0.0.1", port_ucx=ucx, port_ctrl=ctrl, ctrl_uds_dir=folder)
"""
BY_STORE = HEAD + """
group = collective.init_group(**where, rank=rank, world=world, store=store)
"""

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
END = """
collective.barrier(group)
print("done")
"""


def run_all(code, world, tmp_path, **environment):
    ports = [(free_port(), free_port()) for _ in range(world)]
    store = "%s:%d" % (HERE, free_port())
    children = []
    try:
        for rank in range(world):
            children.append(Child(code, rank, world, ports, store, tmp_path, **environment))
        for child in children:
            assert child.answer() == "done"
        for child in children:
            status, _ = child.finish()
            assert status == 0, child.errors
    finally:
        for child in children:
            child.__exit__()


@pytest.mark.parametrize("world", [1, 2, 3, 4, 5, 9])
def test_every_operation_is_right(world, tmp_path):
    run_all(BY_STORE + EVERYTHING + END, world, tmp_path)


def test_operations_work_over_sockets(tmp_path):
    run_all(BY_STORE + EVERYTHING + END, 3, tmp_path, HMC_TRANSPORTS="tcp")


def test_adds_tensors(tmp_path):
    pytest.importorskip("torch")
    run_all(BY_STORE + IN_TORCH + END, 3, tmp_path)


def test_finds_the_members_through_torch(tmp_path):
    torch = pytest.importorskip("torch")
    if not torch.distributed.is_available():
        pytest.skip("this torch is built without torch.distributed")
    run_all(HEAD + """
import torch.distributed as dist
dist.init_process_group("gloo", init_method="tcp://" + store, rank=rank, world_size=world)
group = collective.init_group(**where)
assert (group.rank, group.world) == (rank, world)
""" + IN_TORCH + END, 2, tmp_path)


def test_takes_the_members_as_a_list(tmp_path):
    run_all(HEAD + """
members = [collective.GroupMember(r, world, "127.0.0.1", a, 0, b) for r, (a, b) in enumerate(ports)]
group = collective.init_group(**where, rank=rank, members=members)
""" + IN_TORCH.replace("import torch", "import numpy").split("for dtype")[0] + END, 3, tmp_path)


def test_a_wrong_secret_is_refused(tmp_path):
    code = HEAD + """
try:
    collective.init_group(**where, rank=rank, world=world, store=store, timeout=60)
except hmc.PermissionDenied as error:
    print("refused")
except hmc.HMCError as error:
    print(type(error).__name__, error)
"""
    ports = [(free_port(), free_port()) for _ in range(2)]
    store = "%s:%d" % (HERE, free_port())
    with Child(code, 0, 2, ports, store, tmp_path, HMC_SECRET="one"), \
            Child(code, 1, 2, ports, store, tmp_path, HMC_SECRET="two") as second:
        assert second.answer() == "refused"


def connected(store, end):
    """A connection to rank 0, which may not listen yet."""
    host, port = store.split(":")
    while True:
        with contextlib.suppress(ConnectionRefusedError):
            return socket.create_connection((host, int(port)), timeout=PATIENCE)
        assert time.monotonic() < end


def test_strangers_hold_nobody_up():
    store = "%s:%d" % (HERE, free_port())
    with ThreadPoolExecutor(2) as pool, contextlib.ExitStack() as strangers:
        first = pool.submit(rendezvous.gather, store, 0, 2, "zero", PATIENCE)
        for word in (b"", b"GET / HTTP/1.1\r\n\r\n", b"0 {}\n", b"0 " + b"9" * (2 << 20)):
            stranger = connected(store, time.monotonic() + PATIENCE)
            strangers.enter_context(stranger)
            with contextlib.suppress(OSError):  # rejected before all of it was sent
                stranger.sendall(word)
        second = pool.submit(rendezvous.gather, store, 1, 2, "one", PATIENCE)
        assert first.result(PATIENCE) == second.result(PATIENCE) == ["zero", "one"]


def test_a_rank_that_is_taken_is_refused():
    store = "%s:%d" % (HERE, free_port())
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(rendezvous.gather, store, 0, 3, "zero", PATIENCE)
        twins = [pool.submit(rendezvous.gather, store, 1, 3, "one", PATIENCE) for _ in range(2)]
        done = concurrent.futures.wait(twins, PATIENCE, concurrent.futures.FIRST_COMPLETED).done
        with pytest.raises(hmc.InvalidArgument, match="refused us: rank 1 is taken"):
            done.pop().result()
        assert rendezvous.gather(store, 2, 3, "two", PATIENCE) == first.result(PATIENCE)


def test_a_rank_0_that_ends_too_early_is_named():
    store = "%s:%d" % (HERE, free_port())
    with ThreadPoolExecutor(1) as pool, hmc.Node(listen="tcp://" + store) as node:
        joining = pool.submit(rendezvous.gather, store, 1, 3, "one", PATIENCE)
        node.next_note(PATIENCE)
        node.close()
        with pytest.raises(hmc.PeerLost, match="ended before all ranks had joined"):
            joining.result(PATIENCE)


def test_ranks_that_do_not_connect_are_named(tmp_path):
    with hmc.create_session(buffer_size=4096) as session:
        with pytest.raises(hmc.DeadlineExceeded, match="rank 1, 2 of 3 did not connect in time"):
            collective.init_group(session=session, my_ip=HERE, port_ucx=free_port(), rank=0,
                                  world=3, store="%s:%d" % (HERE, free_port()), timeout=0.2,
                                  ctrl_uds_dir=str(tmp_path))
        with pytest.raises(hmc.DeadlineExceeded, match="rank 0 does not answer"):
            collective.init_group(session=session, my_ip=HERE, rank=1, world=3, timeout=0.2,
                                  start_servers=False, store="%s:%d" % (HERE, free_port()))


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
    (lambda g: collective.alltoall(g, np.zeros(400), np.zeros(400)), "needs 6400 bytes.*has 4096"),
    (lambda g: collective.allgather(g, b"ab", bytearray(3)), "recv must have 2, not 3"),
    (lambda g: collective.broadcast(g, bytearray(1), root=1), "root is 1"),
    (lambda g: collective.reduce_scatter(g, np.zeros(3), np.zeros(2)), "send must have 16, not 24"),
    (lambda g: collective.allreduce(g, np.zeros(3), op="mean"), "op is 'mean'"),
    (lambda g: collective.allreduce(g, bytearray(8)), "no numbers to reduce"),
])
def test_says_what_is_wrong(call, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        call(alone())


def test_needs_to_be_told_who_takes_part():
    if "torch" in sys.modules and sys.modules["torch"].distributed.is_initialized():
        pytest.skip("torch.distributed is initialised in this process")
    with hmc.create_session(buffer_size=4096) as session:
        with pytest.raises(hmc.HMCError, match='init_process_group.*store="HOST:PORT"'):
            collective.init_group(session=session, my_ip=HERE, port_ucx=1)
        with pytest.raises(hmc.InvalidArgument, match="'nowhere' is no address"):
            collective.init_group(session=session, my_ip=HERE, rank=1, world=2, store="nowhere",
                                  start_servers=False)
