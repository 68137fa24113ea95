"""One transfer over several memories on both sides, prepared ones, and notes that follow them."""

import asyncio

import numpy as np
import pytest

import hmc
from node_peers import pair
from peers import PATIENCE


@pytest.fixture(params=["ipc", "tcp"])
def sides(request):
    """Node a, Node b that has connected to it, and b's Peer for a."""
    with pair([request.param]) as three:
        yield three


def pools(a, to_a, count):
    """Regions of a as arrays, and the same as b sees them."""
    ours = [a.allocate(1 << 16, name="pool%d" % i) for i in range(count)]
    return [np.asarray(one) for one in ours], [to_a.open("pool%d" % i) for i in range(count)]


def test_moves_pairs_of_several_memories_and_regions(sides):
    a, b, to_a = sides
    arrays, remotes = pools(a, to_a, 3)
    local = b.allocate(1 << 16)
    np.asarray(local)[:] = 9
    parts = [(b"abc", remotes[0]), (np.arange(100, dtype="i4"), remotes[1][1000:]),
             (local[:50000], remotes[2]), (local[:7], remotes[2][60000:60007]), [b"z", remotes[0][9:]]]
    b.put(parts, timeout=PATIENCE)
    assert bytes(arrays[0][:10]) == b"abc\0\0\0\0\0\0z"
    assert arrays[1][1000:1400].tobytes() == np.arange(100, dtype="i4").tobytes()
    assert arrays[2].sum() == 9 * 50007 and (arrays[2][60000:60007] == 9).all()

    first, second, third = bytearray(3), np.zeros(100, "i4"), b.allocate(50000)
    b.get(((first, remotes[0]), (second, remotes[1][1000:]), (third, remotes[2])), timeout=PATIENCE)
    assert first == b"abc" and (second == np.arange(100)).all() and set(bytes(third)) == {9}


def test_one_transfer_stands_for_all_pairs(sides):
    a, b, to_a = sides
    arrays, remotes = pools(a, to_a, 3)
    sources = [np.full(1 << 16, i + 1, np.uint8) for i in range(3)]
    transfer = b.start_put(zip(sources, remotes))
    transfer.wait(timeout=PATIENCE)
    assert transfer.done() and remotes[0].path in transfer.path
    assert [set(one) for one in arrays] == [{1}, {2}, {3}]
    back = [np.zeros(1 << 16, np.uint8) for _ in range(3)]

    async def fetch():
        await asyncio.gather(b.start_get(zip(back[:2], remotes)), b.start_get([(back[2], remotes[2])]))

    asyncio.run(asyncio.wait_for(fetch(), PATIENCE))
    assert all((one == other).all() for one, other in zip(back, sources))
    assert hmc.wait_any([b.start_get(zip(back, remotes))], timeout=PATIENCE).done()
    b.put([])
    assert b.start_put([]).done()


def test_large_pairs_to_several_peers_move_together():
    size = 24 << 20
    with hmc.Node(transports=["tcp"]) as source:
        receivers = [hmc.Node(listen="tcp://127.0.0.1:0", transports=["tcp"]) for _ in range(2)]
        weights = np.random.default_rng(1).integers(0, 256, size, np.uint8)
        pools = [one.allocate(size, name="weights") for one in receivers]
        remotes = [source.connect(one.address).open("weights") for one in receivers]
        source.put([(weights, remote) for remote in remotes], timeout=PATIENCE, note=b"new")
        for one, pool in zip(receivers, pools):
            assert one.next_note(timeout=PATIENCE).data == b"new"
            assert (np.asarray(pool) == weights).all()
            with pytest.raises(hmc.DeadlineExceeded):  # one note for each peer
                one.next_note(timeout=0)
            one.close()


def test_if_one_pair_does_not_fit_none_moves(sides):
    a, b, to_a = sides
    arrays, remotes = pools(a, to_a, 1)
    with pytest.raises(hmc.OutOfRange, match="put of 4 bytes passes the end of the 3 bytes"):
        b.put([(b"1234", remotes[0]), (b"1234", remotes[0][:3])])
    with pytest.raises(TypeError, match=r"pairs\[1\] is .*pass tuples of"):
        b.put([(b"1234", remotes[0]), (remotes[0], b"1234")])
    with pytest.raises(hmc.InvalidArgument, match="another Node has opened"):
        a.put([(b"1234", remotes[0])])
    with pytest.raises(ValueError, match="read-only"):
        b.get([(bytearray(4), remotes[0]), (b"1234", remotes[0])])
    assert not arrays[0].any()


def test_a_peer_that_goes_is_the_error_of_its_pairs(sides):
    a, b, to_a = sides
    arrays, remotes = pools(a, to_a, 1)
    with hmc.Node(listen="tcp://127.0.0.1:0") as other:
        kept = other.allocate(1 << 16, name="kept")
        peer = b.connect(other.address)
        remote = peer.open("kept")
        to_a.close()
        with pytest.raises(hmc.HMCError):
            b.put([(bytes([5]) * 65536, remote), (bytes(65536), remotes[0])], timeout=PATIENCE)
        assert set(bytes(kept)) == {5}


def test_a_note_follows_the_bytes(sides):
    a, b, to_a = sides
    arrays, (remote,) = pools(a, to_a, 1)
    local = b.allocate(4096)
    puts = [lambda note: remote.put(b"12345", note=note),
            lambda note: remote.put(bytes(60000), PATIENCE, None, note),
            lambda note: remote.put_blocks(local, [0], [8], 8, note=note),
            lambda note: b.put([(b"12345", remote), (b"12", remote[9:])], note=note),
            lambda note: remote.prepare(local).put(note=bytearray(note))]
    for number, put in enumerate(puts):
        np.asarray(local)[:] = number + 1
        put(b"%d" % number)
        assert a.next_note(timeout=PATIENCE).data == b"%d" % number
    assert set(arrays[0][:4096]) == {5}
    remote.put(b"quiet", note=None)
    with pytest.raises(TypeError, match="note is 'text': pass bytes"):
        remote.put(b"x", note="text")
    with pytest.raises(TypeError, match="at most 3"):
        remote.get(bytearray(1), 30, None, b"note")
    with pytest.raises(hmc.DeadlineExceeded):
        a.next_note(timeout=0)


def test_prepared_blocks_move_again_and_again(sides):
    a, b, to_a = sides
    arrays, (remote,) = pools(a, to_a, 1)
    memory = np.zeros(1 << 16, np.uint8)
    order = np.random.default_rng(3).permutation(64)
    prepared = remote.prepare(memory, np.arange(64) * 1024, order * 1024, 1024)
    assert (len(prepared), prepared.nbytes) == (64, 1 << 16)
    for number in range(3):
        memory[:] = np.random.default_rng(number).integers(0, 256, 1 << 16)
        prepared.put(timeout=PATIENCE) if number else prepared.start_put().wait(timeout=PATIENCE)
        assert (arrays[0].reshape(64, 1024)[order] == memory.reshape(64, 1024)).all()
        sent = memory.copy()
        memory[:] = 0
        prepared.get(timeout=PATIENCE) if number else prepared.start_get().wait(timeout=PATIENCE)
        assert (memory == sent).all()

    async def again():
        await prepared.start_get()

    asyncio.run(asyncio.wait_for(again(), PATIENCE))


def test_pairs_can_be_prepared(sides):
    a, b, to_a = sides
    arrays, remotes = pools(a, to_a, 2)
    first, second = bytearray(b"first"), b.allocate(6)
    prepared = b.prepare([(first, remotes[0][1:]), (second, remotes[1])])
    first[:], second_bytes = b"1st..", memoryview(second)
    second_bytes[:] = b"second"
    prepared.put(timeout=PATIENCE)
    assert bytes(arrays[0][:6]) == b"\0001st.." and bytes(arrays[1][:6]) == b"second"


def test_what_cannot_be_prepared_says_why(sides):
    a, b, to_a = sides
    _, (remote,) = pools(a, to_a, 1)
    with pytest.raises(ValueError, match="not contiguous"):
        remote.prepare(np.zeros((4, 4))[:, 1])
    with pytest.raises(hmc.OutOfRange, match="block 1"):
        remote.prepare(bytearray(8), [0, 8], [0, 0], 4)
    with pytest.raises(hmc.InvalidArgument, match="all three, or none"):
        remote.prepare(bytearray(8), [0])
    with pytest.raises(hmc.OutOfRange, match=r"pairs\[0\] has 8 bytes for the 4 bytes"):
        b.prepare([(bytearray(8), remote[:4])])
    constant = remote.prepare(b"constant")
    constant.put(timeout=PATIENCE)
    with pytest.raises(hmc.InvalidArgument, match="read-only"):
        constant.get()
