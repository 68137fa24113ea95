"""Transfers and notes in asyncio: the event loop watches descriptors of the core, no thread polls.

Only documented methods of loops are used, so that any loop with add_reader() will do. Imported when
something is awaited for the first time.
"""

from __future__ import annotations

import os
import threading
import weakref
from asyncio import AbstractEventLoop, CancelledError, Future, get_running_loop, shield
from typing import AsyncIterator, Dict, MutableMapping

from . import _core
from .errors import PeerLost


class _Watch:
    """The transfers that one event loop waits for. Used by the loop's thread only."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._completed = _core.CompletionQueue()
        self._futures: Dict[int, Future[None]] = {}
        self._last = 0
        loop.add_reader(self._completed.fileno(), self._take)

    def future_of(self, loop: AbstractEventLoop, transfer: _core.Transfer) -> Future[None]:
        """Done when the transfer is, or cancelled."""
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
# Changed with _lock only.
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
    """What `await transfer` does. Being cancelled cancels the transfer, and waits until no byte of
    it moves any more, so that its memory is the caller's again; a second cancel does not wait."""
    if not transfer._over():  # done() would poll the transport, once for every transfer
        loop = get_running_loop()
        try:
            await (_watches.get(loop) or _watch_of(loop)).future_of(loop, transfer)
        except CancelledError:
            if not transfer.done():
                # It may take the peer's answer, or the lease: not the loop's thread.
                await shield(loop.run_in_executor(None, transfer.cancel))
            raise
    transfer.wait(0)


async def notes(node: _core.Node) -> AsyncIterator[_core.Note]:
    """What Node.notifications() does."""
    loop = get_running_loop()
    # One of its own: a loop has one reader for each descriptor.
    descriptor = os.dup(node._note_fd())
    try:
        while True:
            try:
                note = node._note_if_any()
            except PeerLost:  # the Node was closed
                return
            if note is None:
                await _readable(loop, descriptor)
            else:
                yield note
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
