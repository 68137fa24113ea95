"""Memory that is taken back, by revoke() or by dropping the last region."""

import contextlib
import signal
import sys
import threading

import pytest

import hmc
from node_peers import pair
from peers import PATIENCE, Child

# Opens the region "mine" of the node at the address, and waits for a line.
OPENER = """
import sys, hmc
with hmc.Node(name="opener") as node:
    remote = node.connect(sys.argv[1]).open("mine")
    print(remote.transport)
    sys.stdin.readline()
"""


@contextlib.contextmanager
def serving(lease):
    """A node, its region "mine", and a process that has opened it."""
    with hmc.Node(listen="tcp://127.0.0.1:0", heartbeat=0.2, lease=lease) as node:
        region = [node.allocate(4096, name="mine")]
        with Child(OPENER, node.address) as opener:
            assert opener.answer() == "ipc"
            yield node, region, opener


def test_dropping_a_region_lets_other_threads_run():
    with serving(lease=2) as (node, region, opener):
        node.unregister("mine")
        opener.stop()  # so dropping the region waits for the lease
        go, ran = threading.Lock(), threading.Event()
        go.acquire()

        def other():
            go.acquire()
            ran.set()

        thread = threading.Thread(target=other)
        usual = sys.getswitchinterval()
        # Other threads then run only where this one releases the GIL.
        sys.setswitchinterval(PATIENCE)
        try:
            thread.start()
            go.release()
            before = ran.is_set()
            del region[0]
            after = ran.is_set()
        finally:
            sys.setswitchinterval(usual)
            opener.send(signal.SIGCONT)
            thread.join(PATIENCE)
        assert (before, after) == (False, True)


def test_revoked_memory_is_out_of_reach():
    with pair(["ipc"]) as (a, _, to_a):
        region = a.allocate(4096, name="mine")
        remote = to_a.open("mine")
        remote.put(b"before")
        region[:8].revoke(timeout=PATIENCE)
        with pytest.raises(hmc.HMCError):
            remote.put(b"behind")
        assert bytes(region[:6]) == b"before"
        with pytest.raises(hmc.NotFound):
            to_a.open("mine")


def test_a_peer_that_does_not_confirm_is_named():
    with serving(lease=PATIENCE) as (node, region, opener):
        peer = node.peer("opener", timeout=PATIENCE)
        opener.stop()
        with pytest.raises(hmc.DeadlineExceeded, match="opener"):
            region[0].revoke(timeout=0.1)
        assert not peer.connected
        with pytest.raises(hmc.InvalidArgument):
            region[0].revoke(timeout=-1)


def test_mapped_memory_is_seen_without_a_copy():
    with pair(["ipc"]) as (a, _, to_a):
        region = a.allocate(4096, name="mine")
        shown = to_a.open("mine")[8:16].data()
        shown[:5] = b"hello"
        assert bytes(region[8:13]) == b"hello" and len(shown) == 8
        memoryview(region)[8:10] = b"HE"
        assert bytes(shown[:5]) == b"HEllo"
        a.allocate(64, name="fixed", access="r")
        assert to_a.open("fixed").data().readonly


def test_memory_that_is_not_mapped_is_not_shown():
    with pair(["tcp"]) as (a, _, to_a):
        a.allocate(64, name="mine")
        assert to_a.open("mine").data() is None
