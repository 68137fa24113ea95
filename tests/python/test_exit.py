"""The ends of processes, forks and Ctrl-C, with whatever is under way."""

import contextlib
import os
import pathlib
import signal
import time

import pytest

from node_peers import SERVER
from peers import PATIENCE, Child

# Everything that can be left over, in globals. The peer stands still, so that nothing gets done.
LEFT_OVER = """
import sys, hmc
node = hmc.Node(name="user", listen="tcp://127.0.0.1:0", lease=60)
peer = node.connect(sys.argv[1])
remote = peer.open("pool")
region = node.allocate(1 << 20, name="region")
registered = node.register(bytearray(1 << 20), name="registered")
view = memoryview(region)
print("ready", flush=True)
sys.stdin.readline()
transfers = [remote.start_get(registered), remote.start_put(bytes(1 << 20))]
"""

# Daemon threads that are inside the core when the interpreter ends.
THREADS = LEFT_OVER + """
import threading
begun = [threading.Event() for _ in range(4)]
def run(event, work):
    event.set()
    while True:
        work()
work = [lambda: remote.get(bytearray(8)), lambda: node.next_note(), lambda: transfers[0].wait(),
        lambda: node.peer("nobody")]
for event, one in zip(begun, work):
    threading.Thread(target=run, args=(event, one), daemon=True).start()
for event in begun:
    event.wait()
"""

AWAITED = LEFT_OVER + """
import asyncio
async def wait():
    task = asyncio.ensure_future(asyncio.wait_for(transfers[0], 60))
    notes = asyncio.ensure_future(node.notifications().__anext__())
    await asyncio.sleep(0)
loop = asyncio.new_event_loop()
loop.run_until_complete(wait())
"""

ENDS = {
    "falls off the end": "",
    "calls sys.exit": "sys.exit(0)",
    "drops the node first": "del node, peer",
    "is in a cycle": "class C: pass\nc = C(); c.me = c; c.all = transfers, remote, node\n"
                     "del node, peer, remote, transfers",
}


@pytest.mark.parametrize("code", [LEFT_OVER, THREADS, AWAITED],
                         ids=["left over", "threads", "awaited"])
@pytest.mark.parametrize("end", list(ENDS))
def test_the_interpreter_ends(code, end):
    with Child(SERVER, "tcp") as server, Child(code + ENDS[end], server.answer()) as user:
        assert user.answer() == "ready"
        server.stop()
        user.tell("go")
        assert user.ends() == 0, user.errors
        assert "terminate" not in user.errors and "Fatal" not in user.errors


def test_threads_that_put_all_the_time_end_with_the_interpreter():
    with Child(SERVER) as server, Child(
            "import sys, threading, hmc\n"
            "node = hmc.Node()\n"
            "remote = node.connect(sys.argv[1]).open('pool')\n"
            "turning = threading.Semaphore(0)\n"
            "def put(data):\n"
            "    while True:\n"
            "        remote.put(data)\n"
            "        turning.release()\n"
            "for size in (8, 8, 65536, 1 << 20):\n"
            "    threading.Thread(target=put, args=(bytes(size),), daemon=True).start()\n"
            "for _ in range(100):\n"
            "    turning.acquire()\n", server.answer()) as user:
        assert user.ends() == 0, user.errors
        assert user.errors == ""


FORK = """
import os, sys, hmc
node = hmc.Node(listen="tcp://127.0.0.1:0")
peer = node.connect(sys.argv[1])
remote = peer.open("pool")
region = node.allocate(4096)
transfer = remote.start_get(region)
transfer.wait()

def child():
    calls = [lambda: remote.put(b"x"), lambda: remote.get(region), lambda: peer.open("pool"),
             lambda: peer.notify(b"x"), lambda: node.next_note(), lambda: node.allocate(8),
             lambda: node.register(bytearray(8)), lambda: node.connect(sys.argv[1]),
             lambda: node.peers(), lambda: node.close(), lambda: memoryview(region),
             lambda: remote.start_put(b"x")]
    for number, call in enumerate(calls):
        try:
            call()
        except (hmc.InvalidArgument, BufferError) as error:
            assert "forked" in str(error), error
        else:
            raise AssertionError("call %d did not say that this is a child" % number)
    with hmc.Node() as own:
        into = bytearray(4)
        own.connect(sys.argv[1]).open("pool").get(into)
        assert into == bytes([7]) * 4
    print("child", flush=True)

if os.fork() == 0:
    child()
    sys.exit(5)  # the long way, which destroys what the parent made
_, status = os.wait()
assert os.WEXITSTATUS(status) == 5, status
remote.put(b"still here")
print("parent", flush=True)
"""


def test_a_forked_child_is_told_to_make_its_own():
    with Child(SERVER) as server, Child(FORK, server.answer()) as user:
        assert user.answer() == "child"
        assert user.answer() == "parent"
        assert user.ends() == 0, user.errors


@pytest.mark.parametrize("wait", ["remote.get(bytearray(8), timeout=600)",
                                  "remote.start_get(bytearray(8)).wait(timeout=600)",
                                  "node.next_note(timeout=600)",
                                  "node.peer('nobody', timeout=600)",
                                  "node.connect(sys.argv[1], timeout=600)",
                                  "peer.open('pool', timeout=600)",
                                  "hmc.wait_any([remote.start_get(bytearray(8))], timeout=600)"])
def test_ctrl_c_ends_a_wait(wait):
    # Who was started in the background, by a shell, does not hear Ctrl-C.
    code = """
import signal, sys, hmc
signal.signal(signal.SIGINT, signal.default_int_handler)
with hmc.Node(lease=1, heartbeat=0.2) as node:
    peer = node.connect(sys.argv[1])
    remote = peer.open("pool")
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        print("waiting", flush=True)
        %s
    except KeyboardInterrupt:
        print("interrupted", flush=True)
""" % wait
    with Child(SERVER, "tcp") as server, Child(code, server.answer()) as user:
        assert user.answer() == "ready"
        server.stop()
        user.tell("go")
        assert user.answer() == "waiting"
        user.send(signal.SIGINT)
        assert user.answer() == "interrupted"
        assert user.ends() == 0, user.errors


# Waits in C's own end, when there is no interpreter any more, for a line on its standard input.
# Nobody answers the call, whose thread has the last reference to the Node.
LATE = """
import ctypes, signal, socket, hmc
signal.signal(signal.SIGINT, signal.default_int_handler)
libc = ctypes.CDLL(None)
libc["__cxa_atexit"](libc.getchar, None, None)
silent = socket.socket()
silent.bind(("127.0.0.1", 0))
silent.listen()
node = hmc.Node()
try:
    print("waiting", flush=True)
    node.connect("tcp://127.0.0.1:%d" % silent.getsockname()[1], timeout=2)
except KeyboardInterrupt:
    del node
"""


def callers(pid):
    """How many threads a process has, apart from HMC's own."""
    names = [task.joinpath("comm").read_text()
             for task in pathlib.Path("/proc/%d/task" % pid).iterdir()]
    return sum(not name.startswith("hmc-") for name in names)


def test_a_call_that_was_interrupted_may_outlive_the_interpreter():
    with Child(LATE) as user:
        assert user.answer() == "waiting"
        while callers(user.process.pid) == 1:
            os.sched_yield()
        user.send(signal.SIGINT)
        deadline = time.monotonic() + PATIENCE
        with contextlib.suppress(OSError):  # a thread, or the process, has just ended
            while callers(user.process.pid) > 1:
                assert time.monotonic() < deadline
                os.sched_yield()
        with contextlib.suppress(BrokenPipeError):
            user.tell()
        assert user.ends() == 0, user.errors
