"""How the ranks of a group find each other, and part."""

import contextlib
import os
import re
import select
import signal
import socket
import subprocess
import sys

import pytest

import hmc
from hmc import collective
from peers import HERE, PATIENCE, Child
from ranks import END, HEAD, MEET, Ranks, placed, run_all

pytest.importorskip("numpy")


WITH_DEFAULTS = """
import numpy
from hmc import collective
group = collective.init_group()
numbers = numpy.full(1 << 19, group.rank + 1.0)  # more than its session's buffer
collective.allreduce(group, numbers)
assert (numbers == 6).all()
""" + END


def test_needs_no_arguments_where_a_launcher_has_started_the_ranks(tmp_path):
    run_all(WITH_DEFAULTS, 3, tmp_path)


# The documented arguments, without a launcher.
BY_HAND = HEAD + """
rank, world, ports, store, folder = (int(sys.argv[1]), int(sys.argv[2]), eval(sys.argv[3]),
                                     sys.argv[4], sys.argv[5])
ucx, ctrl = ports[rank]
where = dict(session=sess, my_ip="127.0.0.1", port_ucx=ucx, port_ctrl=ctrl, ctrl_uds_dir=folder,
             rank=rank)
"""


@pytest.fixture
def held_port():
    """Gives ports that no other process is given while the test runs; listeners may use them."""
    with contextlib.ExitStack() as holders:
        def hold():
            holder = holders.enter_context(socket.socket())
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            holder.bind((HERE, 0))
            return holder.getsockname()[1]
        yield hold


@pytest.mark.parametrize("how", [
    "world=world, store=store",
    "members=[collective.GroupMember(r, world, '127.0.0.1', a, 0, b)"
    " for r, (a, b) in enumerate(ports)]"])
@pytest.mark.parametrize("transport", ["", "tcp", "uds"])
def test_everything_can_be_said_by_hand(how, transport, held_port, tmp_path):
    ports = [(held_port(), held_port()) for _ in range(3)]
    store = "%s:%d" % (HERE, held_port())
    code = BY_HAND + "group = collective.init_group(**where, %s)" % how + """
sockets = os.path.exists(folder + "/hmc_ctrl_rank_%d.sock" % rank)
assert sockets == (os.environ["CTRL_TRANSPORT"] == "uds")
""" + END
    with Ranks(code, 3, lambda rank: {"CTRL_TRANSPORT": transport},
               lambda rank: (rank, 3, ports, store, tmp_path)) as ranks:
        ranks.finish()


def torchrun(rank, job, tmp_path):
    # A loopback address that no other test has, because the store's port follows from torch's.
    return {"RANK": str(rank), "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "4", "MASTER_PORT": "29500",
            "MASTER_ADDR": "127.%d.%d.%d" % (1 + job % 250, job // 250 % 250, 1 + job // 62500)}


def mpirun(rank, job, tmp_path):
    return {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "4",
            "OMPI_COMM_WORLD_LOCAL_SIZE": "4", "PMIX_RANK": str(rank),
            "PMIX_NAMESPACE": "prterun-host/%d@1" % job, "XDG_RUNTIME_DIR": str(tmp_path)}


@pytest.mark.parametrize("launcher", [torchrun, mpirun])
def test_ranks_of_a_launcher_meet(launcher, tmp_path):
    job = os.getpid()
    with Ranks(HEAD + MEET + END, 4, lambda rank: launcher(rank, job, tmp_path)) as ranks:
        ranks.finish()


def test_ranks_of_pool_run_meet():
    command = [sys.executable, "-m", "hmc", "pool", "run", "--tag", "-n", "4", sys.executable,
               "-c"]
    done = subprocess.run(command + [HEAD + MEET + END], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout
    assert sorted(done.stdout.splitlines()) == ["[%d] done" % rank for rank in range(4)]


@pytest.mark.parametrize("addresses", [(HERE, "::1"), ("::1", HERE)])
def test_ranks_of_one_host_may_have_different_addresses(addresses, tmp_path):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this host has no ::1")
    meet = MEET.replace("session=sess", "session=sess, my_ip=sys.argv[1]")
    run_all(HEAD + meet + GATHER, 2, tmp_path, arguments=lambda rank: (addresses[rank],))


@pytest.mark.parametrize("order", [(2, 1, 0), (1, 2, 0), (0, 2, 1), (1, 0, 2)])
def test_ranks_may_start_in_any_order(order, tmp_path):
    store = "unix://%s/store" % tmp_path
    with Ranks(HEAD + "print('here')\n" + MEET + END) as ranks:
        for rank in order:
            ranks.start(rank, **placed(rank, 3, store))
            assert ranks[rank].answer() == "here"
        for rank in order:
            assert ranks[rank].answer() == "done"


TWICE = """
import numpy as np
for turn, name in enumerate(("default", "default", "other", "default")):
    if turn == 3:
        sess = hmc.create_session(buffer_size=1 << 20)
    group = collective.init_group(session=sess, group_id=name, server_barrier=turn != 1)
    total = np.full(5, group.rank + turn)
    collective.allreduce(group, total)
    assert (total == sum(range(group.world)) + group.world * turn).all()
"""


def test_groups_follow_each_other_in_the_same_processes(tmp_path):
    run_all(HEAD + TWICE + END, 4, tmp_path)


# Through the sessions' buffers, whose messages show how far a rank is.
MEET_THROUGH_BUFFERS = MEET + "group.core = None\n"
# A rank that says when it has entered an operation, and hears the others out when it is told to.
SLOWLY = """
if rank == int(sys.argv[1]):
    hear = group.hear
    def slowly(other, what, timeout=None):
        if what == {last} and not said:
            said.append(print("entered"))
            input()
        return hear(other, what, timeout)
    said, group.hear = [], slowly
"""
GATHER = """
import numpy as np
all = np.zeros(world)
collective.allgather(group, np.full(1, rank + 1.0), all)
assert all.tolist() == list(range(1, world + 1))
"""


@pytest.mark.parametrize("world, last, operation", [
    (2, "BARRIER", "collective.barrier(group)\n"), (3, "TAKEN", GATHER), (8, "TAKEN", GATHER)])
@pytest.mark.parametrize("slow", [0, 1])
def test_who_is_done_may_leave_while_others_are_not(world, last, operation, slow, tmp_path):
    store = "unix://%s/store" % tmp_path
    code = HEAD + MEET_THROUGH_BUFFERS + SLOWLY.replace("{last}", last) + operation + "print('done')"
    with Ranks(code, world, lambda rank: placed(rank, world, store),
               lambda rank: (slow,)) as ranks:
        assert ranks[slow].answer() == "entered"
        for rank in set(range(world)) - {slow}:
            assert ranks[rank].answer() == "done"
            assert ranks[rank].ends() == 0, ranks[rank].errors
        assert ranks[slow].ask() == "done"


# What went wrong, in one line.
REPORT = """
print("here")
input()
try:
    collective.init_group(session=sess, timeout=float(sys.argv[1]))
    print("met")
except hmc.HMCError as error:
    print(type(error).__name__, error)
"""


def reporting(world, told, timeout):
    """Ranks that have come to the point where they wait to be told to go on."""
    ranks = Ranks(HEAD + REPORT, world, told, lambda rank: (timeout,))
    for rank in range(world):
        assert ranks[rank].answer() == "here"
    return ranks


# Longer than the store's lease of a rank that died.
A_WHILE = 10


@pytest.mark.parametrize("killed", [1, 2])
@pytest.mark.parametrize("joining", [False, True])
def test_a_rank_that_is_killed_before_all_have_met_is_named(killed, joining, tmp_path):
    store = "unix://%s/store" % tmp_path
    left = [rank for rank in range(3) if rank != killed]
    with reporting(3, lambda rank: placed(rank, 3, store), A_WHILE) as ranks:
        ranks[0].tell()
        if joining:
            ranks[killed].tell()  # it dies somewhere on its way
        ranks[killed].send(signal.SIGKILL)
        ranks[killed].ends()
        ranks[left[1]].tell()
        for rank in left:
            # Whoever gives up last may have seen the other one do so.
            answer = ranks[rank].answer()
            named = re.match("DeadlineExceeded rank ([0-9, ]+) of 3 did not connect in time", answer)
            assert named and str(killed) in named[1] and str(rank) not in named[1], answer


def test_a_rank_0_that_is_killed_is_named(tmp_path):
    store = "unix://%s/store" % tmp_path
    with reporting(2, lambda rank: placed(rank, 3, store), A_WHILE) as ranks:
        for rank in (0, 1):
            ranks[rank].tell()
        ranks[0].send(signal.SIGKILL)
        assert "DeadlineExceeded rank 0" in ranks[1].answer()


def test_a_rank_that_is_there_already_is_refused(tmp_path):
    store = "unix://%s/store" % tmp_path
    told = [placed(rank, 3, store) for rank in (0, 1, 1, 2)]
    with reporting(4, lambda rank: told[rank], PATIENCE) as ranks:
        for rank in (0, 1, 2):
            ranks[rank].tell()
        # One of the twins gives up; which one, depends on who came first.
        ready, _, _ = select.select([ranks[twin].process.stdout for twin in (1, 2)], [], [], PATIENCE)
        refused = 1 if ranks[1].process.stdout in ready else 2
        assert ranks[refused].answer().startswith("AlreadyExists rank 1 of default at " + store)
        assert [ranks[3].ask(), ranks[3 - refused].answer(), ranks[0].answer()] == ["met"] * 3


# Rank 2 has offered its part, and dies before it takes those of the others.
DIES = """
import numpy as np
if rank == 2:
    group.begin()
    for other in group.others():
        group.say(other, READY, 0)
    print("offered")
    input()
try:
    collective.allgather(group, np.zeros(1000), np.zeros(1000 * world), timeout=100)
except hmc.HMCError as error:
    print(type(error).__name__, error)
"""


def test_a_rank_that_is_killed_in_mid_operation_is_named(tmp_path):
    store = "unix://%s/store" % tmp_path
    with Ranks(HEAD + MEET_THROUGH_BUFFERS + DIES, 3, lambda rank: placed(rank, 3, store)) as ranks:
        assert ranks[2].answer() == "offered"
        ranks[2].send(signal.SIGKILL)
        answers = [ranks[rank].answer() for rank in (0, 1)]
        # One of them may hear first that the other has given up.
        assert all(re.match("PeerLost rank [0-2]: ", answer) for answer in answers), answers
        assert any(answer.startswith("PeerLost rank 2: ") for answer in answers), answers


# Rank 2 dies while the others wait for it.
DIES_FIRST = """
import numpy as np
if rank == 2:
    print("here")
    input()
try:
    collective.allreduce(group, np.zeros(100000), timeout=100)
except hmc.HMCError as error:
    print(type(error).__name__, error)
try:
    collective.broadcast(group, np.zeros(1))
except hmc.HMCError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize("transports", ["", "tcp"])
def test_all_learn_which_rank_was_killed(transports, tmp_path):
    store = "unix://%s/store" % tmp_path
    with Ranks(HEAD + MEET + DIES_FIRST, 3, lambda rank: {
            **placed(rank, 3, store), "HMC_TRANSPORTS": transports}) as ranks:
        assert ranks[2].answer() == "here"
        ranks[2].send(signal.SIGKILL)
        for rank in (0, 1):
            answer = ranks[rank].answer()
            assert answer.startswith("PeerLost rank 2: "), answer
            assert ranks[rank].answer() == answer


WAITS = """
import numpy as np
if rank == 0:
    try:
        print("entered")
        collective.allreduce(group, np.zeros(10))
    except KeyboardInterrupt:
        print("interrupted")
else:
    input()
"""


def test_control_c_ends_an_operation(tmp_path):
    store = "unix://%s/store" % tmp_path
    with Ranks(HEAD + MEET + WAITS, 2, lambda rank: placed(rank, 2, store)) as ranks:
        assert ranks[0].answer() == "entered"
        interrupt(ranks[0])
        ranks[1].tell()


def test_a_wrong_secret_is_refused(tmp_path):
    store = "unix://%s/store" % tmp_path
    told = [{**placed(rank, 2, store), "HMC_SECRET": "secret %d" % rank} for rank in (0, 1)]
    with reporting(2, lambda rank: told[rank], PATIENCE) as ranks:
        for rank in (0, 1):
            ranks[rank].tell()
        assert ranks[1].answer().startswith("PermissionDenied")


def test_ranks_that_do_not_connect_are_named(held_port):
    store = "%s:%d" % (HERE, held_port())
    with hmc.create_session(buffer_size=4096) as session:
        with pytest.raises(hmc.DeadlineExceeded, match="rank 1, 2 of 3 did not connect in time"):
            collective.init_group(session=session, rank=0, world=3, store=store, timeout=2)
        with pytest.raises(hmc.DeadlineExceeded, match="rank 0 does not answer"):
            collective.init_group(session=session, rank=1, world=3, store=store, timeout=0.2)


@pytest.mark.parametrize("rank", [0, 1])
def test_members_that_are_listed_and_do_not_come_are_named(rank, held_port):
    members = [collective.GroupMember(which, 2, HERE, held_port(), 0, 0) for which in (0, 1)]
    with hmc.create_session(buffer_size=4096) as session:
        with pytest.raises(hmc.DeadlineExceeded,
                           match="rank %d of 2 did not connect in time" % (1 - rank)):
            collective.init_group(session=session, my_ip=HERE, rank=rank, members=members,
                                  port_ucx=members[rank].port_ucx, timeout=0.2)


def test_needs_to_be_told_who_takes_part(monkeypatch):
    if "torch" in sys.modules and sys.modules["torch"].distributed.is_initialized():
        pytest.skip("torch.distributed is initialised in this process")
    for name in list(os.environ):
        if name.startswith(("HMC_POOL_", "SLURM_", "OMPI_", "PMI", "RANK", "MASTER_")):
            monkeypatch.delenv(name)
    with hmc.create_session(buffer_size=4096) as session:
        with pytest.raises(hmc.InvalidArgument, match="HMC_POOL_STORE.*torchrun"):
            collective.init_group(session=session)
        with pytest.raises(hmc.InvalidArgument, match="not this process's rank.*HMC_POOL_RANK"):
            collective.init_group(session=session, world=2, store="127.0.0.1:1")
        with pytest.raises(hmc.InvalidArgument, match="nowhere"):
            collective.init_group(session=session, my_ip=HERE, rank=1, world=2, store="nowhere",
                                  timeout=5)
        with pytest.raises(TypeError, match="members= needs rank="):
            collective.init_group(session=session, members=[collective.GroupMember(0, 1, HERE, 1, 0, 0)])
        assert collective.init_group(session=session, rank=0, world=1).me.ip == HERE


INTERRUPTED = """
import sys, hmc
from hmc import collective
session = hmc.create_session(buffer_size=4096, local_ip="127.0.0.1")
try:
    collective.init_group(session=session, rank=int(sys.argv[1]), world=2, store=sys.argv[2],
                          timeout=10 * %d)
except KeyboardInterrupt:
    print("interrupted")
""" % PATIENCE


def interrupt(child):
    child.send(signal.SIGINT)
    assert child.answer() == "interrupted"
    assert child.ends() == 0


def test_control_c_ends_the_waiting_for_other_ranks(held_port):
    port = held_port()
    with Child(INTERRUPTED, 0, "%s:%d" % (HERE, port)) as child:
        # It serves the store when it waits.
        while child.process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex((HERE, port)) == 0:
                    break
        interrupt(child)


def test_control_c_ends_the_waiting_for_the_store():
    with socket.create_server((HERE, 0)) as dead:
        dead.settimeout(PATIENCE)
        with Child(INTERRUPTED, 1, "%s:%d" % dead.getsockname()) as child:
            dead.accept()[0].close()
            interrupt(child)
