"""fetch_add and compare_swap on a peer's memory."""

import asyncio

import numpy as np
import pytest

import hmc
from node_peers import pair
from peers import PATIENCE, Child

# Opens "words" over the transport at the address, and adds to its first number as often.
ADDER = """
import sys, hmc
with hmc.Node(name="adder", transports=sys.argv[2]) as node:
    words = node.connect(sys.argv[1]).open("words")
    print("open")
    sys.stdin.readline()
    for _ in range(int(sys.argv[3])):
        words.fetch_add(0, 1)
    print("done")
"""


@pytest.fixture(params=["ipc", "tcp"])
def words(request):
    """Numbers of a node, and the region of its peer that is all of them."""
    with pair([request.param]) as (a, _, to_a):
        target = np.asarray(a.allocate(64, name="words")).view(np.uint64)
        yield target, to_a.open("words")


def test_what_was_there_comes_back(words):
    target, remote = words
    assert remote.fetch_add(8, 5) == 0
    assert remote.fetch_add(8, -2, timeout=PATIENCE) == 5
    assert remote.compare_swap(8, 4, 7) == 3 and target[1] == 3
    assert remote.compare_swap(8, expected=3, desired=-1, timeout=PATIENCE) == 3
    assert target[1] == 2**64 - 1 and remote.fetch_add(np.int64(8), np.uint64(2)) == 2**64 - 1
    assert list(target) == [0, 1, 0, 0, 0, 0, 0, 0]


def test_a_slice_is_all_that_can_be_changed(words):
    target, remote = words
    assert remote[16:32].fetch_add(8, 9) == 0 and target[3] == 9
    with pytest.raises(hmc.OutOfRange, match="8 bytes at offset 9 pass the end of the 16 bytes"):
        remote[16:32].compare_swap(9, 0, 1)
    with pytest.raises(hmc.InvalidArgument, match="remote offset 20: the 8 bytes have to begin"):
        remote[16:32].fetch_add(4, 1)
    assert list(target) == [0, 0, 0, 9, 0, 0, 0, 0]


def test_bad_numbers_are_named(words):
    _, remote = words
    with pytest.raises(TypeError, match="value is 1.5: pass an integer"):
        remote.fetch_add(0, 1.5)
    with pytest.raises(hmc.InvalidArgument, match="offset is -8"):
        remote.fetch_add(-8, 1)
    for number in (2**64, -(2**63) - 1):
        with pytest.raises(hmc.InvalidArgument, match=f"desired is {number}"):
            remote.compare_swap(0, 0, number)


def test_in_asyncio(words):
    target, remote = words

    async def change():
        before = await asyncio.gather(*[remote.fetch_add_async(0, 1) for _ in range(20)])
        assert sorted(before) == list(range(20))
        assert await remote.compare_swap_async(0, 20, 100, timeout=PATIENCE) == 20

    asyncio.run(change())
    assert target[0] == 100


def test_processes_over_different_transports_lose_nothing():
    times = 2000
    with hmc.Node(listen="tcp://127.0.0.1:0") as node:
        target = np.asarray(node.allocate(64, name="words")).view(np.uint64)
        with Child(ADDER, node.address, "ipc", times) as one, Child(
            ADDER, node.address, "tcp", times
        ) as other:
            for child in (one, other):
                assert child.answer() == "open"
            for child in (one, other):
                child.tell()
            for child in (one, other):
                assert child.answer() == "done"
        assert target[0] == 2 * times
