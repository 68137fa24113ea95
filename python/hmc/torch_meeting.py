"""How the ranks of a torch.distributed group find each other: through the store that torch has."""

from __future__ import annotations

import os
import secrets
import time
from datetime import timedelta
from typing import NamedTuple

from . import _core
from .errors import DeadlineExceeded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List

_KEY = "hmc/%s/%d"  # what it is, and whose


class Met(NamedTuple):
    """A group whose ranks are all connected."""

    core: _core.Collective
    node: _core.Node  # for messages between two ranks
    addresses: List[str]  # of all ranks' nodes


def meet(store: Any, rank: int, size: int, timeout: timedelta) -> Met:
    """Return when all ranks are connected. Only those that have the store know the secret."""
    deadline = time.monotonic() + timeout.total_seconds()
    # The store may still know what an earlier group of the same name was told.
    turn = store.add(_KEY % ("turn", rank), 1)

    def all_told(what: str, mine: str) -> List[str]:
        what = "%s/%d" % (what, turn)
        store.set(_KEY % (what, rank), mine)
        return [_told(store, what, other, size, deadline) for other in range(size)]

    hosts = [one.split(" ") for one in all_told("host", _host() + " " + secrets.token_hex(16))]
    secret = hosts[0][1]  # rank 0's
    one_host = all(host == hosts[0][0] for host, _ in hosts)
    listen = "tcp://127.0.0.1:0" if one_host else "tcp://0.0.0.0:0"
    core = _core.Collective(rank, size, "torch", listen, secret)
    node = _core.Node(name="torch messages/%d" % rank, listen=listen, secret=secret)
    told = [one.split(" ") for one in all_told("address", "%s %s" % (core.address, node.address))]
    core.connect([one[0] for one in told], max(deadline - time.monotonic(), 0.001))
    return Met(core, node, [one[1] for one in told])


def _told(store: Any, what: str, rank: int, size: int, deadline: float) -> str:
    key = _KEY % (what, rank)
    left = timedelta(seconds=max(deadline - time.monotonic(), 0.001))
    try:
        store.wait([key], left)
    except RuntimeError as error:
        if time.monotonic() < deadline - 0.1:  # a store may count in milliseconds
            raise
        raise DeadlineExceeded("rank %d of %d did not come in time: %s" % (rank, size, error)) \
            from None
    return str(store.get(key).decode())


def _host() -> str:
    """Processes with the same one reach each other by 127.0.0.1."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return "%s/%d" % (file.read().strip(), os.stat("/proc/self/ns/net").st_ino)
