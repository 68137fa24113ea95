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

__all__ = [
    "__version__",
    "AlreadyExists",
    "Cancelled",
    "ConnType",
    "CtrlTransport",
    "DeadlineExceeded",
    "Exhausted",
    "HMCError",
    "InvalidArgument",
    "MemoryType",
    "Node",
    "NotConnected",
    "Note",
    "NotFound",
    "OutOfRange",
    "PathReport",
    "Peer",
    "PeerFacts",
    "PeerLost",
    "PermissionDenied",
    "Region",
    "RemoteRegion",
    "Status",
    "Transfer",
    "Unsupported",
    "wait_all",
    "wait_any",
]
