"""Heterogeneous memory communication: one-sided put and get between any two memories."""

from ._core import __version__
from ._core import Buffer, Communicator, ConnBuffer, CtrlLink, Memory, memory_supported
from .enums import ConnType, CtrlTransport, MemoryType, Status
from .errors import (
    AlreadyExists,
    Cancelled,
    DeadlineExceeded,
    Exhausted,
    HMCError,
    HMCStatusError,
    InvalidArgument,
    NotConnected,
    NotFound,
    OutOfRange,
    PeerLost,
    PermissionDenied,
    Unsupported,
)
from .iobuffer import IOBuffer, memory_type_from_torch_tensor
from .session import Session, create_session

status_t = Status

_COLLECTIVES = ("Group", "GroupMember", "allgather", "allreduce", "alltoall", "barrier",
                "broadcast", "init_group", "reduce_scatter")


def __getattr__(name):
    # hmc.collective is imported when it is first used: most programs do without.
    if name != "collective" and name not in _COLLECTIVES:
        raise AttributeError("module 'hmc' has no attribute %r" % name)
    import importlib

    module = importlib.import_module(".collective", __name__)
    return module if name == "collective" else getattr(module, name)
