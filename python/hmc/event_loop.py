"""Transfers, notes and events in asyncio: the event loop watches the core's descriptors, no thread polls.

A Pool's copies have no descriptor yet: a thread of the loop's executor waits for each that is awaited.

Any loop with add_reader() works, because only documented methods of loops are used. This module is
imported when something is first awaited.
"""

from __future__ import annotations

import os
import threading
import weakref
from asyncio import AbstractEventLoop, CancelledError, Future, get_running_loop, shield
from contextlib import suppress
from typing import Any, AsyncIterator, Callable, Dict, MutableMapping, Optional, TypeVar, Union

from . import _core
from .errors import HMCError, PeerLost

_T = TypeVar("_T")


class _Watch:
    """The transfers that one event loop waits for. Only the loop's thread uses it."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._completed = _core.CompletionQueue()
        self._futures: Dict[int, Future[None]] = {}
        self._last = 0
        loop.add_reader(self._completed.fileno(), self._take)

    def future_of(self, loop: AbstractEventLoop, transfer: _core.Transfer) -> Future[None]:
        """A future that is done when the transfer is."""
        self._last += 1
        self._completed.watch(transfer, self._last)
        future = self._futures[self._last] = loop.create_future()
        return future

    def _take(self) -> None:
        for number in self._completed.take():
            future = self._futures.pop(number)
            if not future.done():
                future.set_result(None)


_lock = threading.Lock()
# Changed only while _lock is held.
_watches: MutableMapping[AbstractEventLoop, _Watch] = weakref.WeakKeyDictionary()


def _watch_of(loop: AbstractEventLoop) -> _Watch:
    with _lock:
        watch = _watches.get(loop)
        if watch is None:
            for other in [other for other in _watches if other.is_closed()]:
                del _watches[other]
            watch = _watches[loop] = _Watch(loop)
        return watch


async def outcome(transfer: _core.Transfer) -> None:
    """What `await transfer` does.

    Cancelling the task begins to cancel the transfer and does not wait: that can take the peer's
    answer, or the lease. Until then the transfer holds its memory and bytes may move; awaiting it
    once more ends when none do.
    """
    if not transfer._over():  # unlike done(), does not poll the transport
        loop = get_running_loop()
        try:
            await (_watches.get(loop) or _watch_of(loop)).future_of(loop, transfer)
        except CancelledError:
            if not transfer.done():
                loop.run_in_executor(None, _cancel, transfer)
            raise
    transfer.wait(0)


def _cancel(transfer: Union[_core.Transfer, _core.PoolTransfer]) -> None:
    with suppress(HMCError):  # for whoever waits for the transfer
        transfer.cancel()


async def in_thread(call: Callable[..., _T], *arguments: Any) -> _T:
    """What a blocking call returns, without blocking the loop."""
    return await get_running_loop().run_in_executor(None, call, *arguments)


def _wait_for_end(transfer: _core.PoolTransfer) -> None:
    with suppress(HMCError):
        transfer.wait(None)


async def pool_outcome(transfer: _core.PoolTransfer) -> None:
    """What `await transfer` does for the copies of a Pool; cancelling is as in outcome()."""
    if not transfer.done():
        loop = get_running_loop()
        try:
            await shield(loop.run_in_executor(None, _wait_for_end, transfer))
        except CancelledError:
            loop.run_in_executor(None, _cancel, transfer)
            raise
    transfer.wait(0)


async def copy(pool: _core.Pool, to: Any, from_: Any, size: Optional[int]) -> None:
    """Pool.copy_async. Starting may connect to a member, which takes a moment: not in the loop's thread."""
    loop = get_running_loop()
    starting = loop.run_in_executor(None, pool.start_copy, [(to, from_, size)])
    try:
        transfer = await shield(starting)
    except CancelledError:
        starting.add_done_callback(_cancel_started)
        raise
    await pool_outcome(transfer)


def _cancel_started(starting: Future[_core.PoolTransfer]) -> None:
    if not starting.cancelled() and not starting.exception():
        get_running_loop().run_in_executor(None, _cancel, starting.result())


async def stream(fileno: Callable[[], int], take: Callable[[], Optional[_T]]) -> AsyncIterator[_T]:
    """What `take` returns when the descriptor is readable, until the Node is closed or the Pool left."""
    loop = get_running_loop()
    # A duplicate, because a loop allows one reader for each descriptor.
    descriptor = os.dup(fileno())
    try:
        while True:
            try:
                one = take()
            except PeerLost:  # the Node was closed, or the Pool left
                return
            if one is None:
                await _readable(loop, descriptor)
            else:
                yield one
    finally:
        os.close(descriptor)


async def _readable(loop: AbstractEventLoop, descriptor: int) -> None:
    future = loop.create_future()

    def wake() -> None:
        if not future.done():
            future.set_result(None)

    loop.add_reader(descriptor, wake)
    try:
        await future
    finally:
        loop.remove_reader(descriptor)
