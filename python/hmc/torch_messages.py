"""send and recv of a torch.distributed group.

A small message is a note. Of a large one the note says where it lies: the receiver fetches it when
it has a place for it, and says that it has.
"""

from __future__ import annotations

import ctypes
import os
import select
import struct
import threading
import time
from collections import deque

from .errors import DeadlineExceeded, HMCError, InvalidArgument
from .torch_tensors import Targets, nbytes, source
from .torch_work import Kept, Work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Deque, Dict, List, Optional

    from ._core import Node, Note, Peer
    from .torch_meeting import Met

_SMALL = 1 << 20
_LOOK = 0.5  # seconds between two looks whether a rank is still there
_CONNECT = 2  # seconds; a rank listens before it is in the group, so it answers unless it died
_BYTES, _OFFER, _TAKEN, _REFUSED = range(4)
# What it is, the sender's rank, its tag, how long it is, its number among the sender's.
_HEADER = struct.Struct("<BIiQQ")


class _Message:
    """One that has arrived, or whose bytes can be fetched."""

    def __init__(self, note: Note) -> None:
        data = note.data
        self.kind, self.rank, self.tag, self.size, self.number = _HEADER.unpack_from(data)
        self.peer = note.peer
        self.bytes = data[_HEADER.size:]

    def move_into(self, tensor: Any, timeout: float) -> None:
        if self.size != nbytes(tensor):
            raise InvalidArgument("rank %d sent %d bytes, and the tensor to receive has %d"
                                  % (self.rank, self.size, nbytes(tensor)))
        if self.kind == _BYTES:
            ctypes.memmove(tensor.data_ptr(), self.bytes, self.size)
        elif self.size != 0:
            self.peer.open(_name(self.number), timeout=timeout).get(tensor, timeout=timeout)


class Pending(Work):
    """A send or recv that is not done."""

    def __init__(self, owner: Messages, name: str, tensor: Any, rank: Optional[int],
                 tag: int) -> None:
        super().__init__(name, [tensor], owner.kept)
        self.rank = rank  # the other one, None if it may be any
        self.tag = tag
        self.suspected = False
        self.deadline = time.monotonic() + owner.timeout

    def _source_rank(self) -> int:
        assert self.rank is not None
        return self.rank

    source_rank = _source_rank


class Receive(Pending):
    def __init__(self, owner: Messages, tensor: Any, rank: Optional[int], tag: int) -> None:
        self._targets = Targets()
        self._memory = self._targets.add(tensor)
        super().__init__(owner, "recv", tensor, rank, tag)

    def matches(self, message: _Message) -> bool:
        return self.tag == message.tag and self.rank in (None, message.rank)

    def take(self, message: _Message) -> None:
        self.rank = message.rank
        message.move_into(self._memory, max(self.deadline - time.monotonic(), 0.001))
        self._targets.store()


class Messages:
    """Those of one rank. A thread takes notes from the first of them on, so that no sender has to
    wait for a receiver that sends, too."""

    def __init__(self, met: Met, rank: int, timeout: float, kept: Kept) -> None:
        self.timeout = timeout
        self.kept = kept
        self._node: Node = met.node
        self._core = met.core
        self._addresses = met.addresses
        self._rank = rank
        self._peers: Dict[int, Peer] = {}
        self._arrived: Deque[_Message] = deque()  # the thread's alone
        self._woken, self._waker = os.pipe()
        self._change = threading.Lock()
        # All below only while _change is held.
        self._receives: List[Receive] = []
        self._sends: Dict[int, Pending] = {}
        self._number = 0
        self._thread: Optional[threading.Thread] = None

    def close(self) -> None:
        with self._change:
            os.close(self._waker)  # which wakes the thread
            if self._thread is None:
                os.close(self._woken)
        self._node.close()

    def send(self, tensor: Any, rank: int, tag: int) -> Work:
        memory = source(tensor)
        peer = self._peer(rank)
        size = nbytes(memory)
        work = Pending(self, "send", tensor, rank, tag)
        with self._change:
            self._number += 1
            number = self._number
            if size > _SMALL:
                self._node.register(memory, name=_name(number), access="r")
                self._sends[number] = work
            self._wake()
        kind = _OFFER if size > _SMALL else _BYTES
        note = _HEADER.pack(kind, self._rank, tag, size, number)
        if kind == _BYTES:
            note += ctypes.string_at(memory.data_ptr(), size)
        peer.notify(note, timeout=self.timeout)
        if kind == _BYTES:
            work.end()
        return work

    def receive(self, tensor: Any, rank: Optional[int], tag: int) -> Work:
        work = Receive(self, tensor, rank, tag)
        with self._change:
            self._receives.append(work)
            self._wake()
        return work

    def _peer(self, rank: int) -> Peer:
        if rank == self._rank or not 0 <= rank < len(self._addresses):
            raise InvalidArgument("rank %d sends to rank %d: it must be another one of the %d"
                                  % (self._rank, rank, len(self._addresses)))
        deadline = time.monotonic() + self.timeout
        while rank not in self._peers:
            gone = self._gone(rank)
            if gone is not None:
                raise gone
            try:
                self._peers[rank] = self._node.connect(self._addresses[rank], timeout=_CONNECT)
            except HMCError:
                if time.monotonic() >= deadline:
                    raise
        return self._peers[rank]

    def _gone(self, rank: int) -> Optional[HMCError]:
        try:
            self._core.check(rank)
        except HMCError as error:
            return type(error)("rank %d is gone: %s" % (rank, error))
        return None

    def _wake(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="hmc-messages", daemon=True)
            self._thread.start()
        os.write(self._waker, b"w")

    def _serve(self) -> None:
        poll = select.poll()
        poll.register(self._node._note_fd(), select.POLLIN)
        poll.register(self._woken, select.POLLIN)
        looked = time.monotonic()
        while True:
            pending = bool(self._receives or self._sends)
            ready = [descriptor for descriptor, _ in poll.poll(_LOOK * 1000 if pending else None)]
            if self._woken in ready and not os.read(self._woken, 4096):
                os.close(self._woken)
                return
            try:
                self._hear_all()
            except HMCError:  # the node is closed
                continue
            self._match()
            if pending and time.monotonic() - looked > _LOOK:
                self._look()
                looked = time.monotonic()

    def _hear_all(self) -> None:
        while True:
            note = self._node._note_if_any()
            if note is None:
                return
            self._hear(note)

    def _hear(self, note: Note) -> None:
        message = _Message(note)
        if message.kind in (_BYTES, _OFFER):
            self._arrived.append(message)
            return
        with self._change:
            work = self._sends.pop(message.number, None)
        if work is not None:
            self._node.unregister(_name(message.number))
            work.end(None if message.kind == _TAKEN else InvalidArgument(message.bytes.decode()))

    def _match(self) -> None:
        """Each receive, in the order in which they came, gets the oldest message that fits.

        Receives that come meanwhile have their turn in the next call: they would meet the messages
        that are left of this one, and not the oldest.
        """
        with self._change:
            waiting = list(self._receives)
        for work in waiting:
            message = next((one for one in self._arrived if work.matches(one)), None)
            if message is None:
                continue
            with self._change:
                if work not in self._receives:  # it has waited too long
                    continue
                self._receives.remove(work)
            self._arrived.remove(message)
            self._take(work, message)

    def _take(self, work: Receive, message: _Message) -> None:
        error: Optional[Exception] = None
        try:
            work.take(message)
        except Exception as why:
            error = why
        if message.kind == _OFFER:
            answer = _HEADER.pack(_REFUSED if error else _TAKEN, self._rank, message.tag, 0,
                                  message.number)
            try:
                message.peer.notify(answer + str(error or "").encode(), timeout=self.timeout)
            except HMCError:
                pass  # who sent it is gone, and has no use for an answer
        work.end(error)

    def _look(self) -> None:
        """End what waits for a rank that is gone, or has waited too long."""
        with self._change:
            pending: List[Pending] = [*self._receives, *self._sends.values()]
        for work in pending:
            error = self._hopeless(work)
            if error is None:
                continue
            with self._change:
                self._receives = [one for one in self._receives if one is not work]
                numbers = [number for number, one in self._sends.items() if one is work]
                for number in numbers:
                    del self._sends[number]
            for number in numbers:
                self._node.unregister(_name(number))
            work.end(error)

    def _hopeless(self, work: Pending) -> Optional[HMCError]:
        if time.monotonic() >= work.deadline:
            return DeadlineExceeded("the %s %s rank %s did not end in time" % (
                work.name, "to" if work.name == "send" else "from",
                "any" if work.rank is None else work.rank))
        others = [work.rank] if work.rank is not None else \
            [rank for rank in range(len(self._addresses)) if rank != self._rank]
        gone = [self._gone(rank) for rank in others]
        if not all(gone):
            return None
        # What it sent before it went may still be under way at the first look.
        suspected, work.suspected = work.suspected, True
        return gone[0] if gone and suspected else None


def _name(number: int) -> str:
    return "message %d" % number
