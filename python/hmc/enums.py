"""The documented enumerations, as integers with names."""

from enum import IntEnum


class Status(IntEnum):
    """How a documented call ended. hmc.Session raises anything but SUCCESS as an exception."""

    SUCCESS = 0
    ERROR = 1
    UNSUPPORT = 2
    INVALID_CONFIG = 3
    TIMEOUT = 4
    NOT_FOUND = 5


class MemoryType(IntEnum):
    """Where memory lies. DEFAULT is the accelerator of this machine, or the CPU."""

    DEFAULT = 0
    CPU = 1
    NVIDIA_GPU = 2
    AMD_GPU = 3
    CAMBRICON_MLU = 4
    HUAWEI_ASCEND_NPU = 5
    MOORE_GPU = 6


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
