"""Transfers, notes and peer events in asyncio: the event loop watches the core's descriptors, no thread polls.

Any loop with add_reader() works, because only documented methods of loops are used. This module is
imported when something is first awaited.
"""

from __future__ import annotations

import os
import threading
import weakref
from asyncio import AbstractEventLoop, CancelledError, Future, get_running_loop, shield
from typing import AsyncIterator, Callable, Dict, MutableMapping, Optional, TypeVar

from . import _core
from .errors import PeerLost

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

    Cancelling the task cancels the transfer and waits until no byte of it moves any more, so that
    the caller may use its memory again. A second cancel does not wait.
    """
    if not transfer._over():  # unlike done(), does not poll the transport
        loop = get_running_loop()
        try:
            await (_watches.get(loop) or _watch_of(loop)).future_of(loop, transfer)
        except CancelledError:
            if not transfer.done():
                # May wait for the peer's answer, or for the lease: not in the loop's thread.
                await shield(loop.run_in_executor(None, transfer.cancel))
            raise
    transfer.wait(0)


async def stream(fileno: Callable[[], int], take: Callable[[], Optional[_T]]) -> AsyncIterator[_T]:
    """What `take` returns when the descriptor is readable, until the Node is closed."""
    loop = get_running_loop()
    # A duplicate, because a loop allows one reader for each descriptor.
    descriptor = os.dup(fileno())
    try:
        while True:
            try:
                one = take()
            except PeerLost:  # the Node was closed
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
