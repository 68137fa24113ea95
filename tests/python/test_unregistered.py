"""Puts from memory that no Node knows, and gets into it."""

import array

import numpy as np
import pytest

import hmc
from node_peers import pair
from peers import PATIENCE


@pytest.fixture(scope="module", params=["ipc", "tcp"])
def sides(request):
    """The bytes of a region, and that region as its peer sees it."""
    with pair([request.param]) as (a, _, to_a):
        yield memoryview(a.allocate(4096, name="pool")), to_a.open("pool")


WHOLE = np.arange(48, dtype=np.int32).reshape(6, 8)
SOURCES = [b"bytes", bytearray(b"bytearray"), memoryview(b"view")[1:3], array.array("d", [1, 2.5]),
           WHOLE, WHOLE[2], WHOLE[:, 3], WHOLE.T, WHOLE[::-1], np.float64(1.5),
           np.array(["a", "bc"]), np.zeros(2, [("On", "i4"), ("x", "f8")]),
           np.array(["2020-01-01"], "M8[s]")]


@pytest.mark.parametrize("source", SOURCES, ids=lambda one: type(one).__name__)
def test_puts_what_the_object_holds(sides, source):
    pool, remote = sides
    held = np.asarray(source).tobytes()
    pool[:] = b"\xff" * len(pool)
    remote[8:].put(source, timeout=PATIENCE)
    assert bytes(pool[8:8 + len(held)]) == held
    assert set(pool[:8]) == set(pool[8 + len(held):]) == {255}


def test_gets_fill_what_can_be_written(sides):
    pool, remote = sides
    pool[:] = bytes(range(256)) * 16
    for into in (bytearray(7), array.array("i", [0] * 5), np.zeros((3, 4)), WHOLE.copy()[2:4]):
        remote[16:].get(into, timeout=PATIENCE)
        assert memoryview(into).tobytes() == bytes(pool[16:16 + memoryview(into).nbytes])
    frozen = np.zeros(4)
    frozen.flags.writeable = False
    for read_only in (b"1234", memoryview(b"1234"), frozen):
        with pytest.raises(ValueError, match="read-only"):
            remote.get(read_only)
    with pytest.raises(ValueError, match="not contiguous"):
        remote.get(WHOLE.copy()[:, 1])


def test_what_does_not_fit_or_is_no_memory_moves_nothing(sides):
    pool, remote = sides
    pool[:] = bytes(len(pool))
    with pytest.raises(hmc.OutOfRange, match="put of 5 bytes passes the end of the 4 bytes"):
        remote[:4].put(b"12345")
    with pytest.raises(TypeError, match="Python objects"):
        remote.put(np.array([object()]))
    with pytest.raises(TypeError, match="no memory"):
        remote.put(12)
    remote.put(b"")
    assert not any(pool)


def test_transfers_under_way_keep_the_object(sides):
    _, remote = sides
    under_way = [remote[i:i + 1].start_put(bytes([i])) for i in range(200)]
    hmc.wait_all(under_way, timeout=PATIENCE)
    back = bytearray(200)
    remote.start_get(back).wait(timeout=PATIENCE)
    assert back == bytes(range(200))
