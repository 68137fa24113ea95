"""The documented enumerations, as integers with names."""

from enum import EnumMeta, IntEnum

from . import _core


class Status(IntEnum):
    """How a documented call ended. hmc.Session raises anything but SUCCESS as an exception."""

    SUCCESS = 0
    ERROR = 1
    UNSUPPORT = 2
    INVALID_CONFIG = 3
    TIMEOUT = 4
    NOT_FOUND = 5


TYPE_CHECKING = False
if TYPE_CHECKING:
    # The other members are known at run time: the rows of HMC_DEVICE_KINDS in include/hmc/device.h.
    class _Members(EnumMeta):
        def __getattr__(cls, name: str) -> "MemoryType": ...

    class MemoryType(IntEnum, metaclass=_Members):
        DEFAULT = 0
        CPU = 1
else:
    MemoryType = IntEnum("MemoryType", ["DEFAULT"] + list(_core.DEVICE_KINDS.values()), start=0,
                         module=__name__)
    MemoryType.__doc__ = "Where memory lies. DEFAULT is the accelerator of this machine, or the CPU."


class ConnType(IntEnum):
    """The transport to use. AUTO takes the best one that reaches the peer."""

    RDMA = 0
    UCX = 1
    TCP = 2
    IPC = 3
    AUTO = 4


class CtrlTransport(IntEnum):
    """What carries tags and small messages."""

    TCP = 0
    UDS = 1
