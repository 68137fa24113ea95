"""Waiting for several transfers."""

from __future__ import annotations

import math
import select
import time

from . import _core
from .errors import DeadlineExceeded, HMCError, InvalidArgument

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Optional


def _end(timeout: float) -> float:
    if not timeout >= 0:
        raise InvalidArgument("a timeout of %r seconds: give 0 or more" % (timeout,))
    return time.monotonic() + timeout


def wait_all(transfers: Iterable[_core.Transfer], timeout: float = 30) -> None:
    """Wait until every transfer has ended, then raise the first failure, if any.

    Raises DeadlineExceeded after `timeout` seconds; transfers that are under way then continue.
    """
    waiting = list(transfers)
    end = _end(timeout)
    failure: Optional[HMCError] = None
    for index, transfer in enumerate(waiting):
        try:
            transfer.wait(max(0.0, end - time.monotonic()))
        except DeadlineExceeded:
            left = sum(not other.done() for other in waiting[index + 1:]) + 1
            raise DeadlineExceeded("%d of %d transfers were not done within %g seconds"
                                   % (left, len(waiting), timeout)) from None
        except HMCError as error:
            failure = failure or error
    if failure is not None:
        raise failure


def wait_any(transfers: Iterable[_core.Transfer], timeout: float = 30) -> _core.Transfer:
    """Wait until one of the transfers has ended, and return it: its wait() says how it ended.

    Raises DeadlineExceeded after `timeout` seconds; all transfers then continue.
    """
    waiting = list(transfers)
    if not waiting:
        raise InvalidArgument("wait_any of no transfers: pass at least one")
    for transfer in waiting:
        if transfer.done():
            return transfer
    completed = _core.CompletionQueue()
    for number, transfer in enumerate(waiting):
        completed.watch(transfer, number)
    poll = select.poll()
    poll.register(completed.fileno(), select.POLLIN)
    end = _end(timeout)
    while True:
        done = completed.take()
        if done:
            return waiting[done[0]]
        left = end - time.monotonic()
        if left <= 0:
            raise DeadlineExceeded("none of %d transfers was done within %g seconds"
                                   % (len(waiting), timeout))
        # At most a day at a time: poll() takes milliseconds in a 32-bit integer.
        poll.poll(math.ceil(min(left, 86400) * 1000))
