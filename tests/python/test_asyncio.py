"""Transfers awaited, and waited for together."""

import asyncio
import contextlib
import gc
import os
import selectors
import signal
import threading

import numpy as np
import pytest

import hmc
from node_peers import SERVER, pair
from peers import PATIENCE, Child

SIZE = 1 << 20


@pytest.fixture(params=["ipc", "tcp"])
def sides(request):
    """b's node, and the remote side of a target whose bytes count up."""
    with pair([request.param]) as (a, b, to_a):
        target = a.allocate(SIZE, name="target")
        np.asarray(target)[:] = np.arange(SIZE) % 251
        yield b, to_a.open("target")


# What cancelling ends with when the peer does not answer: whichever is noticed first.
GIVEN_UP = (hmc.Cancelled, hmc.PeerLost)


def standing_still(lease):
    """The remote side of a peer that stands still, and the peer."""
    with Child(SERVER, "tcp") as server, hmc.Node(lease=lease, heartbeat=0.2) as node:
        remote = node.connect(server.answer()).open("pool")
        server.stop()
        yield remote, server


@pytest.fixture
def stopped():
    yield from standing_still(lease=1.0)


@pytest.fixture
def paused():
    """The same, which will go on."""
    yield from standing_still(lease=PATIENCE)


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, PATIENCE))


async def get_all(remote, into, size):
    starts = range(0, into.nbytes, size)
    await asyncio.gather(*[remote[at:at + size].start_get(into[at:at + size]) for at in starts])


@pytest.mark.parametrize("size", [64, 1 << 14, SIZE])
def test_transfers_are_awaited(sides, size):
    node, remote = sides
    into = node.allocate(SIZE)
    run(get_all(remote, into, size))
    assert (np.asarray(into) == np.arange(SIZE) % 251).all()


def test_a_failure_is_raised_where_it_is_awaited():
    with Child(SERVER, "tcp") as server, hmc.Node() as node:
        remote = node.connect(server.answer()).open("pool")
        server.stop()

        async def lose():
            transfer = remote.start_get(bytearray(8))
            waiting = asyncio.ensure_future(asyncio.gather(transfer, transfer,
                                                           return_exceptions=True))
            await asyncio.sleep(0)
            server.send(signal.SIGKILL)
            for failure in await waiting:
                assert isinstance(failure, hmc.PeerLost), failure
            with pytest.raises(hmc.PeerLost):
                await transfer

        run(lose())


def test_giving_up_cancels_the_transfer_and_does_not_wait_for_the_peer(paused):
    remote, server = paused

    async def give_up():
        transfers = [remote.start_get(bytearray(8)) for _ in range(2)]
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(transfers[0], 0.01)
        task = asyncio.ensure_future(asyncio.wait_for(transfers[1], PATIENCE))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not any(transfer.done() for transfer in transfers), "the peer stands still"
        server.send(signal.SIGCONT)
        for transfer in transfers:
            with contextlib.suppress(hmc.Cancelled):
                await transfer
            assert transfer.done()

    run(give_up())


async def turns_during(waiting, enough):
    """How often the loop turns while something is awaited, up to `enough`."""
    turns = 0
    while not waiting.done() and turns < enough:
        turns += 1
        await asyncio.sleep(0)
    return turns


def test_what_waits_for_a_peer_leaves_the_loop_free(paused):
    remote, server = paused

    async def ask():
        with hmc.Node(name="asks") as node:
            for blocked in (node.peer_async("nobody", timeout=PATIENCE),
                            node.connect_async("127.0.0.1:1", timeout=PATIENCE)):
                waiting = asyncio.ensure_future(blocked)
                assert await turns_during(waiting, 1000) == 1000
                waiting.cancel()
            node.close()  # which ends them

    run(ask())


def test_every_call_that_waits_can_be_awaited():
    async def all_of_them():
        with hmc.Node(name="a", listen="tcp://127.0.0.1:0") as a, hmc.Node(name="b") as b:
            target = await a.register_async(bytearray(64), name="target")
            to_a = await b.connect_async(a.address[len("tcp://"):], timeout=None)
            assert (await a.peer_async("b", timeout=PATIENCE)).name == "b"
            remote = await to_a.open_async("target", timeout=PATIENCE)
            await remote.start_put(b"12345678")
            await to_a.notify_async(b"there")
            assert a.next_note(timeout=PATIENCE).data == b"there"
            assert (await to_a.probe_async()).version == hmc.__version__
            await target.revoke_async(timeout=PATIENCE)
            with pytest.raises(hmc.HMCError):
                await to_a.open_async("target")

    run(all_of_them())


def test_shielded_transfers_go_on(paused):
    remote, server = paused

    async def go_on():
        into = bytearray(8)
        transfer = remote.start_get(into)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.shield(transfer), 0.01)
        server.send(signal.SIGCONT)
        await transfer
        assert into == b"\7" * 8

    run(go_on())


def test_loops_in_several_threads_share_a_handle(sides):
    node, remote = sides
    wrong = []

    def loop():
        into = node.allocate(SIZE)
        try:
            run(get_all(remote, into, 1 << 12))
            if not (np.asarray(into) == np.arange(SIZE) % 251).all():
                wrong.append("data")
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=loop) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=PATIENCE)
    assert wrong == []


def test_closed_loops_leave_nothing_behind(sides):
    node, remote = sides
    into = node.allocate(SIZE)
    run(get_all(remote, into, 1 << 14))
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        run(get_all(remote, into, 1 << 14))
        gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before


def test_other_kinds_of_loops_work(sides):
    node, remote = sides
    into = node.allocate(SIZE)
    loop = asyncio.SelectorEventLoop(selectors.PollSelector())
    try:
        loop.run_until_complete(asyncio.wait_for(get_all(remote, into, 1 << 14), PATIENCE))
    finally:
        loop.close()
    assert (np.asarray(into) == np.arange(SIZE) % 251).all()


def test_a_closed_node_ends_what_is_awaited():
    with Child(SERVER, "tcp") as server:
        node = hmc.Node(lease=1.0, heartbeat=0.2)
        remote = node.connect(server.answer()).open("pool")
        server.stop()

        async def close():
            waiting = asyncio.ensure_future(asyncio.wait([
                asyncio.ensure_future(asyncio.wait_for(remote.start_get(bytearray(8)), PATIENCE))
                for _ in range(10)]))
            await asyncio.sleep(0)
            await asyncio.get_running_loop().run_in_executor(None, node.close)
            done, _ = await waiting
            assert {type(one.exception()) for one in done} == {hmc.PeerLost}

        run(close())


def test_wait_all_waits_for_all_and_raises_the_first_failure(sides, stopped):
    node, remote = sides
    into = node.allocate(SIZE)
    transfers = [remote[at:at + 4096].start_get(into[at:at + 4096])
                 for at in range(0, SIZE, 4096)]
    hmc.wait_all(transfers, timeout=PATIENCE)
    assert all(transfer.done() for transfer in transfers)
    assert (np.asarray(into) == np.arange(SIZE) % 251).all()
    hmc.wait_all([])
    standing = stopped[0].start_get(bytearray(8))
    standing.cancel()
    with pytest.raises(GIVEN_UP):
        hmc.wait_all([standing, transfers[0]])
    with pytest.raises(hmc.InvalidArgument, match="-1"):
        hmc.wait_all([], timeout=-1)


def test_wait_all_counts_those_that_are_late(sides, paused):
    quick = sides[1].start_get(bytearray(8))
    standing = paused[0].start_get(bytearray(8))
    quick.wait(timeout=PATIENCE)
    with pytest.raises(hmc.DeadlineExceeded, match="1 of 2 transfers"):
        hmc.wait_all([standing, quick], timeout=0.01)
    paused[1].send(signal.SIGCONT)
    hmc.wait_all([standing, quick], timeout=PATIENCE)


def test_wait_any_answers_one_that_is_done(sides, paused):
    _, remote = sides
    standing, server = paused[0].start_get(bytearray(8)), paused[1]
    with pytest.raises(hmc.DeadlineExceeded, match="none of 2 transfers"):
        hmc.wait_any([standing, standing], timeout=0.01)
    quick = remote.start_get(bytearray(8))
    assert hmc.wait_any([standing, quick], timeout=PATIENCE) is quick
    server.send(signal.SIGCONT)
    assert hmc.wait_any([standing], timeout=PATIENCE) is standing
    standing.wait(0)
    with pytest.raises(hmc.InvalidArgument, match="no transfers"):
        hmc.wait_any([])


def test_a_transfer_says_what_carries_it(sides):
    _, remote = sides
    transfer = remote.start_put(b"12345678")
    assert transfer.path.startswith(remote.transport)
    assert remote.transport in repr(transfer)
    transfer.wait()
    transfer.cancel()
    transfer.wait(0)
