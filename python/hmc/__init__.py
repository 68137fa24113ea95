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
