"""Notifications: data first, then the note."""

import asyncio
import os

import numpy as np
import pytest

import hmc
from node_peers import pair
from peers import PATIENCE


@pytest.fixture(params=["ipc", "tcp"])
def nodes(request):
    with pair([request.param]) as made:
        yield made


def test_a_note_says_who_and_what(nodes):
    a, _, to_a = nodes
    for data in (b"", b"bytes\0", bytearray(b"array"), memoryview(b"views")[1:]):
        to_a.notify(data, timeout=PATIENCE)
        note = a.next_note(timeout=PATIENCE)
        assert note.data == bytes(data) and note.peer.name == "b"
    note.peer.notify(b"back")
    with pytest.raises(hmc.DeadlineExceeded):
        a.next_note(timeout=0)
    with pytest.raises(TypeError):
        to_a.notify("text")


def test_the_data_of_transfers_that_were_only_begun_comes_first(nodes):
    a, b, to_a = nodes
    target = np.asarray(a.allocate(4 << 20, name="target"))
    local = b.allocate(4 << 20)
    remote = to_a.open("target")
    for turn in range(1, 20):
        np.asarray(local)[:] = turn
        transfer = remote.start_put(local)
        to_a.notify(bytes([turn]), timeout=PATIENCE)
        assert a.next_note(timeout=PATIENCE).data == bytes([turn])
        assert (target == turn).all()
        transfer.wait(timeout=PATIENCE)


def test_notes_are_iterated_until_the_node_is_closed(nodes):
    a, _, to_a = nodes

    async def collect():
        found = []
        async for note in a.notifications():
            found.append(note.data)
            if len(found) == 3:
                a.close()
        return found

    async def speak():
        for text in (b"one", b"two", b"three"):
            to_a.notify(text)
            await asyncio.sleep(0)

    async def both():
        found, _ = await asyncio.wait_for(asyncio.gather(collect(), speak()), PATIENCE)
        return found

    assert asyncio.run(both()) == [b"one", b"two", b"three"]


def test_receivers_share_the_notes_and_leave_no_descriptor(nodes):
    a, _, to_a = nodes
    a._note_fd()

    async def take(count, found):
        async for note in a.notifications():
            found.append(note.data)
            if len(found) == count:
                return

    async def both():
        found = []
        receivers = asyncio.gather(take(20, found), take(20, found), return_exceptions=True)
        for number in range(20):
            to_a.notify(bytes([number]))
            await asyncio.sleep(0)
        while len(found) < 20:
            await asyncio.sleep(0)
        receivers.cancel()  # the one that did not see the last
        await asyncio.gather(receivers, return_exceptions=True)
        return found

    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        found = asyncio.run(asyncio.wait_for(both(), PATIENCE))
        assert sorted(found) == [bytes([number]) for number in range(20)]
    assert len(os.listdir("/proc/self/fd")) <= before
