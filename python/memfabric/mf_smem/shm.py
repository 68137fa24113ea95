"""Share Memory: memory of the same size at each of a fixed number of ranks.

    shm.initialize("tcp://10.0.0.1:7000", world_size, rank, device_id, shm.ShmConfig())
    memory = shm.create(id=0, rank_size=world_size, rank_id=rank, local_mem_size=1 << 21)
    slot = memory.gva + rank * (1 << 21)     # of any rank, the same number in every process
    memory.barrier()
    everybody = memory.all_gather(b"mine")   # bytes of all, by rank

All ranks create the object, and call barriers and allgathers in the same order. Between ranks of
one host slots are mapped: they can be read and written through a pointer where they are host memory.
Rank 0 serves the store, unless its configuration says start_store = False; the store of
bm.initialize() may be used, with the same URL.
"""

import ctypes

from . import _structures
from ._arguments import Made, PrintedEnum, describe, field, octets, switch, text, unsigned
from ._library import NO_RANK, check, last_error, lib

__all__ = ["ShmConfig", "ShmDataOpType", "ShareMemory", "initialize", "uninitialize", "create"]


class ShmDataOpType(PrintedEnum):
    """How slots of others are reached. Programs may say what they like: the best way is taken."""
    MTE = 1
    SDMA = 2
    ROCE = 4


class ShmConfig:
    """What initialize() is to do. Timeouts are in seconds, 1 at least."""

    def __init__(self) -> None:
        self._native = _structures.ShmConfig()
        check(lib.smem_shm_config_init(self._native))

    init_timeout = field("shmInitTimeout", 32, "Of initialize(); 120.")
    create_timeout = field("shmCreateTimeout", 32, "Of create(); 120.")
    operation_timeout = field("controlOperationTimeout", 32, "Of barrier() and the rest; 120.")
    start_store = switch("startConfigStore", "Rank 0 serves the store; True.")
    flags = field("flags", 32, "None exist: 0.")

    def __repr__(self) -> str:
        return describe(self)


def initialize(store_url: str, world_size: int, rank_id: int, device_id: int,
               config: ShmConfig) -> int:
    """Open the store at "tcp://IPv4:port" as one of `world_size` ranks. Returns 0.

    Calling it again changes nothing until uninitialize().
    """
    return check(lib.smem_shm_init(text(store_url, "store_url"),
                                   unsigned(world_size, "world_size"), unsigned(rank_id, "rank_id"),
                                   unsigned(device_id, "device_id", 16), config._native))


def uninitialize(flags: int = 0) -> None:
    """Destroy all objects."""
    lib.smem_shm_uninit(unsigned(flags, "flags"))


def known(number):
    """A number of the library's that is not its sign of failure."""
    if number == NO_RANK:
        raise RuntimeError(last_error())
    return number


class ShareMemory(Made):
    """Memory of all ranks, made by create(). It ends when nobody has it any more."""

    @classmethod
    def _create(cls, id, rank_size, rank_id, local_mem_size, data_op_type, flags):
        gva = ctypes.c_void_p()
        number = lib.smem_shm_create(unsigned(id, "id"), unsigned(rank_size, "rank_size"),
                                     unsigned(rank_id, "rank_id"),
                                     unsigned(local_mem_size, "local_mem_size", 64), data_op_type,
                                     unsigned(flags, "flags"), gva)
        self = cls._of(number, lambda old: lib.smem_shm_destroy(old, 0))
        self._gva = gva.value
        return self

    def set_context(self, context: bytes) -> None:
        """1 to 65536 bytes for the device side of this process; replaces what was set before."""
        data = octets(context)
        check(lib.smem_shm_set_extra_context(self._handle.number, data, len(data)))

    @property
    def local_rank(self) -> int:
        """Our rank in this object."""
        return known(lib.smem_shm_get_global_rank(self._handle.number))

    @property
    def rank_size(self) -> int:
        """How many ranks there are."""
        return known(lib.smem_shm_get_global_rank_size(self._handle.number))

    @property
    def gva(self) -> int:
        """Where slot 0 begins; slot r begins r sizes later."""
        return self._gva

    def barrier(self) -> None:
        """Return when all ranks have called it."""
        check(lib.smem_shm_control_barrier(self._handle.number))

    def all_gather(self, local_data: bytes) -> bytes:
        """The bytes of all ranks, one rank behind the other. All give as many: 1 to 65536."""
        mine = octets(local_data)
        size = len(mine) * self.rank_size
        everybody = ctypes.create_string_buffer(max(1, size))
        check(lib.smem_shm_control_allgather(self._handle.number, mine, len(mine), everybody, size))
        return everybody.raw


def create(id: int, rank_size: int, rank_id: int, local_mem_size: int,
           data_op_type: ShmDataOpType = ShmDataOpType.MTE, flags: int = 0) -> ShareMemory:
    """Make the object `id` together with all of `rank_size` ranks; returns when all are there.

    `local_mem_size` bytes of device memory at each, of the host where there is no device; a
    multiple of 2 MiB, or it is rounded up.
    """
    return ShareMemory._create(id, rank_size, rank_id, local_mem_size, data_op_type, flags)
