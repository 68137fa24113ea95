"""Peers that come and go, and what the transports counted."""

import asyncio

import pytest

import hmc
from node_peers import pair
from peers import PATIENCE


def test_peers_come_and_go():
    with pair(["tcp"]) as (a, b, to_a):
        joined = a.next_peer_event(timeout=PATIENCE)
        assert (joined.kind, joined.peer.name, joined.reason) == ("joined", "b", "")
        with pytest.raises(hmc.DeadlineExceeded):
            a.next_peer_event(timeout=0)
        to_a.close()
        left = a.next_peer_event(timeout=PATIENCE)
        assert left.kind == "left" and left.peer == joined.peer and left.reason
        assert repr(left) == '<hmc.PeerEvent: "b" left>'


def test_events_are_iterated_until_the_node_is_closed():
    with pair(["tcp"]) as (a, _, to_a):
        async def watch():
            seen = []
            async for event in a.peer_events():
                seen.append((event.kind, event.peer.name))
                to_a.close() if event.kind == "joined" else a.close()
            return seen

        assert asyncio.run(asyncio.wait_for(watch(), PATIENCE)) == [("joined", "b"), ("left", "b")]


def test_transports_count_what_they_moved():
    with pair(["tcp"]) as (a, b, to_a):
        a.allocate(4096, name="pool")
        to_a.open("pool").put(bytes(1000))
        counts = {one.transport: one for one in b.counters()}
        assert list(counts) == ["tcp"]
        assert (counts["tcp"].operations, counts["tcp"].bytes) == (1, 1000)
        assert (counts["tcp"].retries, counts["tcp"].stalls) == (0, 0)
