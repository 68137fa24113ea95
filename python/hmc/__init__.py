"""Heterogeneous memory communication: one-sided put and get between any two memories."""

from ._core import (
    Buffer, Call, Communicator, ConnBuffer, CtrlLink, Grant, Memory, Node, Note, PathReport, Peer,
    PeerEvent, PeerFacts, Pool, PoolEvent, PoolTransfer, Prepared, Region, RegionInfo, RemoteRegion,
    Slot, Transfer, TransportCounts, __version__, memory_supported,
)
from .enums import ConnType, CtrlTransport, MemoryType, Status
from .errors import (
    AlreadyExists, Cancelled, DeadlineExceeded, Exhausted, HMCError, HMCStatusError,
    InvalidArgument, NotConnected, NotFound, OutOfRange, PeerLost, PermissionDenied, Unsupported,
)
from .iobuffer import IOBuffer, memory_type_from_torch_tensor
from .session import Session, create_session
from .waiting import wait_all, wait_any

status_t = Status

__all__ = [
    "__version__", "AlreadyExists", "Buffer", "Call", "Cancelled", "Communicator", "ConnBuffer",
    "ConnType", "create_session", "CtrlLink", "CtrlTransport", "DeadlineExceeded", "Exhausted",
    "Grant", "HMCError", "HMCStatusError", "InvalidArgument", "IOBuffer", "Memory", "memory_supported",
    "memory_type_from_torch_tensor", "MemoryType", "Node", "NotConnected", "Note", "NotFound",
    "OutOfRange", "PathReport", "Peer", "PeerEvent", "PeerFacts", "PeerLost", "PermissionDenied", "Pool",
    "PoolEvent", "PoolTransfer", "Prepared", "Region", "RegionInfo", "RemoteRegion", "Session", "Slot", "Status", "status_t", "Transfer",
    "TransportCounts", "Unsupported", "wait_all", "wait_any",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import collective as collective
    from .collective import (
        Group as Group,
        GroupMember as GroupMember,
        allgather as allgather,
        allreduce as allreduce,
        alltoall as alltoall,
        barrier as barrier,
        broadcast as broadcast,
        init_group as init_group,
        reduce_scatter as reduce_scatter,
    )
else:
    _COLLECTIVES = ("Group", "GroupMember", "allgather", "allreduce", "alltoall", "barrier",
                    "broadcast", "init_group", "reduce_scatter")

    def __getattr__(name):
        # Most programs do not use hmc.collective, so it is imported at its first use.
        if name != "collective" and name not in _COLLECTIVES:
            raise AttributeError("module 'hmc' has no attribute %r" % name)
        import importlib

        module = importlib.import_module(".collective", __name__)
        return module if name == "collective" else getattr(module, name)
