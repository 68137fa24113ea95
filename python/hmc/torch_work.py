"""Operations of a torch.distributed group: what torch calls Work, and who runs them, and when."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from datetime import timedelta
from queue import SimpleQueue

import torch.distributed as dist
from torch.futures import Future

from .errors import DeadlineExceeded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Deque, List, Optional


class Kept:
    """Operations whose end nobody has asked for yet.

    C++ code of older torch versions holds only its half of a Work, whose wait() would never return
    without the Python half. It asks for its end, or for the future, before it starts many more.
    """

    _MOST = 64

    def __init__(self) -> None:
        self._works: OrderedDict[int, Work] = OrderedDict()

    def add(self, work: Work) -> None:
        self._works[id(work)] = work
        if len(self._works) > self._MOST:
            self._works.popitem(last=False)

    def drop(self, work: Work) -> None:
        self._works.pop(id(work), None)


class Work(dist._Work):  # type: ignore[misc]
    """One operation, from its start to its end. Any thread may wait for it."""

    def __init__(self, name: str, result: List[Any], kept: Kept) -> None:
        super().__init__()
        self.name = name
        self._kept = kept
        self._result = result
        self._change = threading.Lock()
        self._ended = threading.Event()
        self._error: Optional[BaseException] = None
        self._future: Optional[Future[List[Any]]] = None
        kept.add(self)

    def end(self, error: Optional[BaseException] = None) -> None:
        """Its memory is the caller's again."""
        with self._change:
            if self._ended.is_set():
                return
            self._error = error
            self._ended.set()
            future = self._future
        if future is not None:
            self._tell(future)

    def _tell(self, future: Future[List[Any]]) -> None:
        if self._error is None:
            future.set_result(self._result)
        else:
            future.set_exception(self._error)

    # What torch calls, from Python and from C++.

    def is_completed(self) -> bool:
        return self._ended.is_set()

    def is_success(self) -> bool:
        return self._ended.is_set() and self._error is None

    def exception(self) -> Optional[BaseException]:
        return self._error

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        seconds = timeout.total_seconds()
        if not self._ended.is_set() and not self._run_until_end(seconds if seconds > 0 else None):
            raise DeadlineExceeded("the %s is not done after %g s" % (self.name, seconds))
        self._kept.drop(self)
        if self._error is not None:
            raise self._error
        return True

    def _run_until_end(self, seconds: Optional[float]) -> bool:
        return self._ended.wait(seconds)

    def synchronize(self) -> None:
        self.wait()

    def result(self) -> List[Any]:
        return self._result

    def get_future(self) -> Future[List[Any]]:
        with self._change:
            known = self._future
            if known is not None:
                return known
            self._future = future = Future()
            ended = self._ended.is_set()
        self._kept.drop(self)
        if ended:
            self._tell(future)
        return future


class Turns:
    """The collectives of one group, which run one after the other: in the thread that waits for
    one, because it has nothing else to do, else in a thread of ours."""

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self._waiting: Deque[Turn] = deque()
        self._running = threading.Lock()
        self._wake: SimpleQueue[bool] = SimpleQueue()
        self._thread: Optional[threading.Thread] = None

    def start(self, turn: Turn) -> None:
        self._waiting.append(turn)
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="hmc-torch", daemon=True)
            self._thread.start()
        self._wake.put(True)

    def close(self) -> None:
        """The thread ends after what has been started."""
        self._wake.put(False)

    def _serve(self) -> None:
        while self._wake.get():
            if self._waiting:
                with self._running:
                    self._run_next()

    def run_until(self, turn: Turn) -> None:
        while not turn.is_completed():
            with self._running:
                if not turn.is_completed():
                    self._run_next()

    def _run_next(self) -> None:
        if self._waiting:
            self._waiting.popleft().run()


class Turn(Work):
    """An operation that all ranks take part in."""

    def __init__(self, turns: Turns, name: str, run: Callable[[float], None], timeout: timedelta,
                 result: List[Any], kept: Kept) -> None:
        super().__init__(name, result, kept)
        self._turns = turns
        self._run: Optional[Callable[[float], None]] = run
        seconds = timeout.total_seconds()
        self._timeout = seconds if seconds > 0 else turns.timeout
        self._deadline = time.monotonic() + self._timeout
        turns.start(self)

    def run(self) -> None:
        run, self._run = self._run, None  # with the tensors that it holds
        assert run is not None
        try:
            run(max(self._deadline - time.monotonic(), 0.001))
        except BaseException as error:
            self.end(error)
            if not isinstance(error, Exception):
                raise  # Ctrl-C, in the thread that waits
        else:
            self.end()

    def _run_until_end(self, seconds: Optional[float]) -> bool:
        if seconds is not None:
            return super()._run_until_end(seconds)
        self._turns.run_until(self)
        return True
