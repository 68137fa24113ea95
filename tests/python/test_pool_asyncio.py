"""A pool in asyncio, and members whose slots are not mapped, as those of other hosts are not."""

import asyncio
import contextlib
import signal
import threading

import numpy as np
import pytest

import hmc
from peers import PATIENCE
from pool_members import SIZE, member, new_store, tell


@pytest.fixture(params=[None, ["tcp"]], ids=["mapped", "tcp"])
def sides(request):
    """Rank 0, and rank 1 in a process of its own."""
    store = new_store()
    with hmc.Pool(store, capacity=4, host_size=SIZE, serve_store=True, timeout=PATIENCE,
                  transports=request.param) as pool:
        with member(store, transports=request.param) as (second, _):
            yield pool, second


@pytest.fixture
def paused():
    """The same over tcp, with rank 1 standing still; it will go on."""
    store = new_store()
    with hmc.Pool(store, capacity=4, host_size=SIZE, serve_store=True, timeout=PATIENCE,
                  transports=["tcp"], lease=PATIENCE) as pool:
        with member(store, transports=["tcp"], lease=PATIENCE) as (second, _):
            pool.copy(pool.slot(1), b"connected", timeout=PATIENCE)
            second.stop()
            yield pool, second
            second.send(signal.SIGCONT)


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, PATIENCE))


def test_copies_are_awaited(sides):
    pool, second = sides
    data = np.random.default_rng(1).integers(0, 256, SIZE, np.uint8)

    async def there_and_back():
        slot = pool.slot(1)
        step = SIZE // 16
        await asyncio.gather(*[pool.copy_async(slot[at:at + step], data[at:at + step])
                               for at in range(0, SIZE, step)])
        back = np.zeros_like(data)
        transfer = pool.start_copy([(back[at:at + step], slot[at:at + step])
                                    for at in range(0, SIZE, step)])
        await transfer
        await transfer
        return back

    assert (run(there_and_back()) == data).all()
    assert tell(second, "assert np.asarray(pool.slot(1)).sum() == %d" % data.sum()) == "done"


def test_failures_are_raised_where_they_are_awaited(sides):
    pool, second = sides

    async def lose():
        with pytest.raises(hmc.NotFound, match="rank 2"):
            await pool.copy_async(pool.base() + 2 * pool.stride(), b"nobody")
        with pytest.raises(hmc.NotFound, match="rank 2"):
            await pool.start_copy([(pool.base() + 2 * pool.stride(), b"nobody")])
        with pytest.raises(TypeError, match="str has no memory"):
            await pool.copy_async("text", pool.slot(0))

    run(lose())


def test_events_are_iterated_until_we_leave(sides):
    pool, second = sides

    async def watch():
        seen = []
        async for event in pool.events():
            seen.append((event.kind, event.rank))
            second.send(signal.SIGKILL) if event.kind == "joined" else pool.leave()
        return seen

    assert run(watch()) == [("joined", 1), ("left", 1)]


def test_a_slot_that_is_not_mapped_is_only_copied():
    store = new_store()
    with hmc.Pool(store, capacity=2, host_size=SIZE, serve_store=True, timeout=PATIENCE,
                  transports=["tcp"]) as pool:
        with member(store, transports=["tcp"]) as (second, _):
            slot = pool.slot(1)
            assert not slot.mapped and slot.nbytes == SIZE
            with pytest.raises(BufferError, match="rank 1's host slot is not mapped"):
                memoryview(slot)
            big = bytes(range(256)) * (SIZE // 256)
            pool.copy(slot, big)
            assert tell(second, "assert bytes(pool.slot(1)) == bytes(range(256)) * %d"
                        % (SIZE // 256)) == "done"
            back = bytearray(SIZE)
            pool.copy(back, slot)
            assert back == big
            pool.copy_2d(back, 16, slot, 256, 16, 10)
            assert bytes(back[:160]) == bytes(range(16)) * 10


def test_a_late_copy_is_cancelled(paused):
    pool, second = paused
    into = bytearray(SIZE)
    with pytest.raises(hmc.DeadlineExceeded, match="a copy of %d bytes" % SIZE):
        threading.Timer(1, second.send, [signal.SIGCONT]).start()
        pool.copy(into, pool.slot(1), timeout=0.05)
    pool.copy(into, pool.slot(1), timeout=PATIENCE)
    assert into[:9] == b"connected"


def test_a_wait_that_is_late_leaves_the_copies_going(paused):
    pool, second = paused
    into = bytearray(9)
    transfer = pool.start_copy([(into, pool.slot(1))])
    assert not transfer.done()
    with pytest.raises(hmc.InvalidArgument, match="under way"):
        transfer.outcomes()
    with pytest.raises(hmc.DeadlineExceeded):
        transfer.wait(timeout=0.05)
    second.send(signal.SIGCONT)
    transfer.wait(timeout=PATIENCE)
    assert into == b"connected"


def test_cancelling_the_task_cancels_the_copies_and_does_not_wait(paused):
    pool, second = paused

    async def give_up(start):
        task = asyncio.ensure_future(start())
        await asyncio.sleep(0.2)
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task  # the peer stands still
        second.send(signal.SIGCONT)

    transfers = []

    async def awaited():
        transfers.append(pool.start_copy([(bytearray(SIZE), pool.slot(1))]))
        await transfers[0]

    run(give_up(awaited))
    with contextlib.suppress(hmc.Cancelled):  # the peer may have answered before
        transfers[0].wait(timeout=PATIENCE)
    second.stop()
    run(give_up(lambda: pool.copy_async(bytearray(SIZE), pool.slot(1))))


def test_cancel_gets_its_turn_while_another_thread_waits(paused):
    pool, second = paused
    transfer = pool.start_copy([(bytearray(SIZE), pool.slot(1))])
    outcome = []

    def wait():
        try:
            transfer.wait(timeout=PATIENCE)
        except hmc.HMCError as error:
            outcome.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    threading.Timer(0.2, second.send, [signal.SIGCONT]).start()
    transfer.cancel()
    waiting.join(PATIENCE)
    assert not waiting.is_alive() and transfer.done()
    # The peer may have answered before.
    assert all(isinstance(error, hmc.Cancelled) for error in outcome)


def test_memory_of_a_dropped_transfer_stays_until_it_has_ended(paused):
    pool, second = paused

    class Owned(bytearray):
        gone = threading.Event()

        def __del__(self):
            Owned.gone.set()

    pool.start_copy([(Owned(9), pool.slot(1))])
    assert not Owned.gone.is_set()
    second.send(signal.SIGCONT)
    pool.copy(bytearray(9), pool.slot(1), timeout=PATIENCE)
    while not Owned.gone.wait(0.01):
        pool.start_copy([])
