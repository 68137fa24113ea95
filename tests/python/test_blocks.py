"""Batches from arrays of offsets, and strided copies."""

import array

import numpy as np
import pytest

import hmc
from node_peers import pair
from peers import PATIENCE

BLOCK = 64
COUNT = 256


@pytest.fixture(params=["ipc", "tcp"])
def sides(request):
    """The target at a, a local region at b with other bytes, and the remote side of the target."""
    with pair([request.param]) as (a, b, to_a):
        target = a.allocate(BLOCK * COUNT, name="target")
        local = b.allocate(BLOCK * COUNT)
        memoryview(local)[:] = np.random.default_rng(1).integers(
            0, 256, BLOCK * COUNT, dtype=np.uint8).tobytes()
        yield np.asarray(target), local, to_a.open("target")


def shuffled(dtype):
    order = np.random.default_rng(2).permutation(COUNT)
    return np.arange(COUNT).astype(dtype) * BLOCK, (order * BLOCK).astype(dtype)


@pytest.mark.parametrize("dtype", ["i2", "u2", "i4", "u4", "i8", "u8"])
def test_blocks_land_where_the_arrays_say(sides, dtype):
    target, local, remote = sides
    here, there = shuffled(dtype)
    sizes = np.full(COUNT, BLOCK, dtype=dtype)
    remote.put_blocks(local, here, there, sizes, timeout=PATIENCE)
    blocks = np.asarray(local).reshape(COUNT, BLOCK)
    assert (target.reshape(COUNT, BLOCK)[there // BLOCK] == blocks).all()
    into = np.zeros(BLOCK * COUNT, dtype=np.uint8)
    remote.get_blocks(into, here, there, BLOCK, timeout=PATIENCE)
    assert (into == np.asarray(local)).all()


def test_one_transfer_stands_for_all_blocks(sides):
    target, local, remote = sides
    here, there = shuffled("i8")
    remote.start_put_blocks(local, here, there, np.int64(BLOCK)).wait(timeout=PATIENCE)
    into = bytearray(BLOCK * COUNT)
    remote.start_get_blocks(into, there, there, BLOCK).wait(timeout=PATIENCE)
    assert into == target.tobytes()


def test_a_hundred_thousand_blocks_are_one_call():
    count = 100000
    with pair() as (a, b, to_a):
        target = np.asarray(a.allocate(count * 16, name="target"))
        local = b.register(np.arange(count * 2, dtype=np.int64))
        to_a.open("target").put_blocks(
            local, np.arange(count) * 16, np.arange(count)[::-1] * 16, 16, timeout=PATIENCE)
        expected = np.arange(count * 2).reshape(count, 2)[::-1]
        assert (target.view(np.int64).reshape(count, 2) == expected).all()


def test_any_column_of_integers_will_do(sides):
    target, local, remote = sides
    expected = bytes(local[8:16]) + bytes(local[:8])
    wide = np.zeros(4, dtype=np.int64)
    wide[2] = 8
    for here in ([8, 0], (8, 0), range(8, -1, -8), array.array("q", [8, 0]), wide[2:],
                 np.array([8, 0], dtype=np.uint8), wide[2::-2]):
        target[:16] = 0
        remote.put_blocks(local, here, [0, 8], 8)
        assert target[:16].tobytes() == expected
    remote.put_blocks(local, [], [], 8)
    remote.put_blocks(local, [], [], [])


def test_tensors_are_columns(sides):
    torch = pytest.importorskip("torch")
    target, local, remote = sides
    remote.put_blocks(local, torch.tensor([8, 0]), torch.tensor([0, 8]), torch.tensor(8))
    assert target[:16].tobytes() == bytes(local[8:16]) + bytes(local[:8])


def test_offsets_are_those_of_slices(sides):
    target, local, remote = sides
    remote[100:200].put_blocks(local[50:60], [0, 5], [90, 95], 5)
    assert target[190:200].tobytes() == bytes(local[50:60])
    with pytest.raises(hmc.OutOfRange, match="block 1, 5 bytes at remote offset 96.* 100 bytes"):
        remote[100:200].put_blocks(local[50:60], [0, 5], [90, 96], 5)
    with pytest.raises(hmc.OutOfRange, match="block 0, 11 bytes at local offset 0.* 10 bytes"):
        remote[100:200].put_blocks(local[50:60], [0], [0], 11)


def test_bad_columns_are_refused_and_nothing_moves(sides):
    target, local, remote = sides
    for here, there, sizes, words in (
            ([0, 1], [0], 1, "2 items and remote_offsets 1"),
            ([0, 1], [0, 1], [1, 1, 1], "2 items and sizes 3"),
            (np.array([0, -8]), [0, 1], 1, r"local_offsets\[1\] is -8"),
            ([0], [0], -1, r"sizes\[0\] is -1"),
            ([0], [1 << 63], 1, "9223372036854775808"),
            ([(1 << 64) - 1], [0], 1, "18446744073709551615"),
            ([0], [1 << 64], 1, r"remote_offsets\[0\] is 18446744073709551616"),
            (np.zeros(2), [0, 1], 1, "format \"d\""),
            (np.zeros((2, 1), dtype=int), [0, 1], 1, "2 dimensions"),
            ([0, 1 << 62], [0, 0], 1 << 62, "block 0"),
            (np.array([0, 2**64 - 1], dtype=np.uint64), [0, 0], 2, "block 1")):
        with pytest.raises(ValueError, match=words):
            remote.put_blocks(local, here, there, sizes)
    for here in (5, "12", [0.5], None):
        with pytest.raises(TypeError):
            remote.put_blocks(local, here, [0, 0], 1)
    assert not target.any()


def test_strided_copies_gather_and_scatter(sides):
    target, local, remote = sides
    remote.put_strided(local, local_offset=4, local_stride=16, remote_offset=2, remote_stride=8,
                       count=10, length=8)
    source = np.asarray(local)
    rows = np.stack([source[4 + 16 * i:12 + 16 * i] for i in range(10)])
    assert (target[2:82].reshape(10, 8) == rows).all()
    into = bytearray(100)
    remote[2:].get_strided(into, local_stride=10, remote_stride=8, count=10, length=8)
    assert (np.frombuffer(into, dtype=np.uint8).reshape(10, 10)[:, :8] == rows).all()
    transfer = remote.start_put_strided(b"xyz", local_stride=1, remote_stride=5, count=3, length=1)
    transfer.wait(timeout=PATIENCE)
    assert target[0:15:5].tobytes() == b"xyz"
    got = bytearray(3)
    remote.start_get_strided(got, local_stride=1, remote_stride=5, count=3,
                             length=1).wait(timeout=PATIENCE)
    assert got == b"xyz"
    with pytest.raises(hmc.OutOfRange, match="4 pieces of 1 bytes, 1 apart.*3 bytes"):
        remote.put_strided(b"xyz", local_stride=1, remote_stride=5, count=4, length=1)
    with pytest.raises(hmc.OutOfRange, match="remote"):
        remote.put_strided(b"xyz", local_stride=0, remote_stride=1 << 63, count=3, length=1)
