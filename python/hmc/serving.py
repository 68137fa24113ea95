"""Node.serve: one thread for each Node that serves answers the calls of its peers."""

from __future__ import annotations

import inspect
import threading
import weakref
from typing import Any, Callable, Dict, MutableMapping, TypeVar

from . import _core
from .errors import DeadlineExceeded, HMCError

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Served = Dict[str, Callable[[_core.Call], Any]]

_lock = threading.Lock()
# Changed only while _lock is held.
_served: MutableMapping[_core.Node, _Served] = weakref.WeakKeyDictionary()


def serve(node: _core.Node, function: _Function) -> _Function:
    """What `@node.serve` does."""
    wants_peer = len(inspect.signature(function).parameters) > 1
    with _lock:
        known = _served.get(node)
        if known is None:
            known = _served[node] = {}
            threading.Thread(target=_answer_all, args=(weakref.ref(node), known), daemon=True,
                             name="hmc-serve").start()
        known[function.__name__] = (
            lambda call: function(call.data, call.peer) if wants_peer else function(call.data))
    return function


def _answer_all(node: weakref.ref[_core.Node], served: _Served) -> None:
    while _answer_next(node(), served):
        pass


def _answer_next(node: Any, served: _Served) -> bool:
    """False when the node is closed or gone. Holds it for a second at a time."""
    try:
        call = node and node.next_call(timeout=1)
    except DeadlineExceeded:
        return True
    except HMCError:
        return False
    if call:
        _answer(call, served)
    return bool(call)


def _answer(call: _core.Call, served: _Served) -> None:
    function = served.get(call.name)
    try:
        if function:
            call.answer(function(call))
        else:
            call.refuse("it serves {}".format(", ".join(sorted(served))))
    except Exception as error:
        call.refuse("{}: {}".format(type(error).__name__, error))
