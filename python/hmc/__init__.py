"""Heterogeneous memory communication: one-sided put and get between any two memories."""

from ._core import (
    Node,
    Note,
    PathReport,
    Peer,
    PeerFacts,
    Region,
    RemoteRegion,
    Transfer,
    __version__,
)
from .enums import ConnType, CtrlTransport, MemoryType, Status
from .errors import (
    AlreadyExists,
    Cancelled,
    DeadlineExceeded,
    Exhausted,
    HMCError,
    InvalidArgument,
    NotConnected,
    NotFound,
    OutOfRange,
    PeerLost,
    PermissionDenied,
    Unsupported,
)
from .waiting import wait_all, wait_any
