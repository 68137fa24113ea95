"""Two nodes in this process, and the code of one that is a process of its own."""

import contextlib

import hmc
from peers import PATIENCE


@contextlib.contextmanager
def pair(transports=None):
    """Nodes a and b, and b's Peer for a."""
    with hmc.Node(name="a", listen="tcp://127.0.0.1:0", transports=transports) as a:
        with hmc.Node(name="b", transports=transports) as b:
            yield a, b, b.connect(a.address, timeout=PATIENCE)


# A node with a region "pool" of 64 MiB whose every byte is 7. Waits for a line, then ends.
SERVER = """
import sys, hmc
with hmc.Node(name="server", listen="tcp://127.0.0.1:0", transports=sys.argv[1:] or None) as node:
    pool = node.allocate(64 << 20, name="pool")
    memoryview(pool)[:] = bytes([7]) * len(pool)
    print(node.address)
    sys.stdin.readline()
"""
