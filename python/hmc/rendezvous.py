"""How processes that know one address find each other.

Rank 0 is a Node that listens there. Every other rank connects and sends a description of itself;
when all have, rank 0 sends the whole list back. HMC_SECRET keeps strangers out.
"""

from __future__ import annotations

import json
import os
import threading
import time

from . import _core
from .errors import DeadlineExceeded, HMCError, InvalidArgument, PeerLost, PermissionDenied

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List


def gather(store: str, rank: int, world: int, mine: Any, timeout: float) -> List[Any]:
    """Exchange `mine` with all ranks, which call this too; return everyone's, in order of rank."""
    _, colon, port = store.rpartition(":")
    if not colon or not port.isdigit():
        raise InvalidArgument("the store %r is no address: it looks like 10.0.0.1:29500" % store)
    end = time.monotonic() + timeout
    with _core.Node(name="rank %d" % rank, secret=os.environ.get("HMC_SECRET", ""),
                    transports=["tcp"]) as node:
        if rank == 0:
            node.listen("tcp://" + store)
            return _serve(node, world, mine, end)
        return _join(node, store, rank, mine, end)


def _left(end: float) -> float:
    return max(end - time.monotonic(), 0.001)


def _send(peer: _core.Peer, value: Dict[str, Any], end: float) -> None:
    peer.notify(json.dumps(value).encode(), _left(end))


def _serve(node: _core.Node, world: int, mine: Any, end: float) -> List[Any]:
    members: Dict[int, Any] = {0: mine}
    peers: Dict[int, _core.Peer] = {}
    while len(members) < world:
        try:
            note = node.next_note(_left(end))
        except DeadlineExceeded:
            missing = ", ".join(map(str, sorted(set(range(world)) - set(members))))
            raise DeadlineExceeded("rank %s of %d did not connect in time: start it, or allow a "
                                   "longer timeout" % (missing, world)) from None
        try:
            request = json.loads(note.data)
            rank, member = int(request["rank"]), request["member"]
        except (ValueError, KeyError, TypeError):
            continue  # not a rank of ours
        if rank in members or not 0 < rank < world:
            _send(note.peer, {"refused": "rank %r is taken or not one of 1 to %d"
                                         % (rank, world - 1)}, end)
            continue
        members[rank], peers[rank] = member, note.peer
    everyone = [members[rank] for rank in range(world)]
    for rank, peer in peers.items():
        try:
            _send(peer, {"members": everyone}, end)
        except PeerLost as error:
            raise PeerLost("rank %d disconnected before all ranks had joined: %s" % (rank, error))
    return everyone


def _join(node: _core.Node, store: str, rank: int, mine: Any, end: float) -> List[Any]:
    peer = _connect(node, store, end)
    _send(peer, {"rank": rank, "member": mine}, end)
    while True:
        try:
            answer = json.loads(node.next_note(min(_left(end), 0.5)).data)
            break
        except DeadlineExceeded:
            if not peer.connected:
                raise PeerLost("rank 0 at %s ended before all ranks had joined" % store) from None
            if time.monotonic() >= end:
                raise DeadlineExceeded("rank 0 at %s still waits for other ranks: start them, or "
                                       "allow a longer timeout" % store) from None
    if "refused" in answer:
        raise InvalidArgument("rank 0 at %s refused us: %s" % (store, answer["refused"]))
    return list(answer["members"])


def _connect(node: _core.Node, store: str, end: float) -> _core.Peer:
    never = threading.Event()
    while True:
        try:
            return node.connect("tcp://" + store, _left(end))
        except PermissionDenied as error:
            raise PermissionDenied("rank 0 and this rank have different secrets: set HMC_SECRET to "
                                   "the same value for all ranks (%s)" % error) from None
        except HMCError as error:
            if _left(end) <= 0.05:
                raise DeadlineExceeded("rank 0 does not answer at %s: %s; start it, or allow a "
                                       "longer timeout" % (store, error)) from None
        # No event says that a listener has appeared, so try again soon.
        never.wait(0.02)
