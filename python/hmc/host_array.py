"""Arrays as host memory that the collectives of C++ work on."""

from __future__ import annotations

import os

from . import arrays

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional
    from .session import Session


class HostArray:
    """An array's own memory, or a part of the session's buffer where it lies on an accelerator."""

    __slots__ = ("direct", "pointer", "nbytes", "itemsize", "end", "_session", "_array", "_owner",
                 "_bias")

    def __init__(self, session: Session, span: arrays.Span, array: Any, bias: int) -> None:
        self.direct = span.on_host
        self.nbytes = span.nbytes
        self.itemsize = span.itemsize
        self._session = session
        self._array = array
        self._owner = span.owner
        self._bias = bias
        self.end = bias  # of what it takes of the session's buffer
        self.pointer = span.pointer
        if not self.direct:
            self.end = bias + span.nbytes
            if self.end > session.buf.size:
                raise ValueError("this needs %d bytes of the session's buffer, which has %d: "
                                 "create the session with a larger buffer_size"
                                 % (self.end, session.buf.size))
            self.pointer = session.buf.ptr + bias

    @classmethod
    def read(cls, session: Session, array: Any, bias: int) -> HostArray:
        """With the array's bytes."""
        made = cls(session, arrays.source(array), array, bias)
        made.load()
        return made

    @classmethod
    def write(cls, session: Session, array: Any, bias: int) -> HostArray:
        """For bytes that store() then moves into the array."""
        return cls(session, arrays.destination(array), array, bias)

    def load(self) -> None:
        if not self.direct:
            self._session.buf.put(self._array, offset=self._bias)

    def store(self) -> None:
        if not self.direct:
            self._session.buf.get_into(self._array, offset=self._bias)

    def copy(self) -> HostArray:
        """The same bytes elsewhere."""
        made = HostArray(self._session, arrays.span_of(_bytes_of(self)), self._array, self._bias)
        made.itemsize = self.itemsize
        return made


def apart(source: HostArray, target: HostArray, shift: Optional[int] = None) -> HostArray:
    """`source`, or a copy where its memory overlaps that of `target`.

    It may lie at `shift` bytes from the begin of `target`.
    """
    if (source.pointer + source.nbytes <= target.pointer
            or target.pointer + target.nbytes <= source.pointer
            or shift is not None and source.pointer == target.pointer + shift):
        return source
    return source.copy()


def _bytes_of(array: HostArray) -> bytearray:
    import ctypes  # few callers need it

    return bytearray((ctypes.c_char * array.nbytes).from_address(array.pointer))


def receive_timeout(timeout: Optional[float]) -> float:
    """In seconds; what HMC_RECV_TIMEOUT_MS says, or 10 minutes, if it is None."""
    if timeout is not None:
        return timeout
    return int(os.environ.get("HMC_RECV_TIMEOUT_MS") or 600000) / 1000
