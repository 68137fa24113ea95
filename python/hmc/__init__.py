"""Heterogeneous memory communication: one-sided put and get between any two memories."""

from ._core import (
    Buffer,
    Communicator,
    ConnBuffer,
    CtrlLink,
    Memory,
    Node,
    Note,
    PathReport,
    Peer,
    PeerFacts,
    Region,
    RemoteRegion,
    Transfer,
    __version__,
    memory_supported,
)
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
from .waiting import wait_all, wait_any

status_t = Status
