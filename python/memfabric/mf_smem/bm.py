"""Big Memory: the memory of many processes in one address space.

    config = bm.BmConfig()
    config.rank_id = rank                    # or: config.auto_ranking = True
    bm.initialize("tcp://10.0.0.1:7000", world_size, device_id, config)
    pool = bm.create(id=0, local_dram_size=0, local_hbm_size=1 << 30)
    address = pool.join()

Slot r begins at pool.peer_rank_ptr(r), the same number in every process. Slots of the same host
can be read and written through a pointer where they are host memory; pool.copy_data() reaches all.
Joining and leaving involves nobody else, and a rank that dies does not stop the others.

One process serves the store at the URL, where the others find each other: rank 0, or with
auto_ranking whoever can listen at that address. `device_id` is ignored on a machine without
accelerators; "HBM" is memory of the host there.
"""

import ctypes

from . import _structures
from ._arguments import (Made, PrintedEnum, describe, field, pointer, rank_field, switch, text,
                         unsigned)
from ._library import NO_RANK, ask, check, last_error, lib

__all__ = ["BmConfig", "BmCopyType", "BmDataOpType", "BigMemory", "initialize", "uninitialize",
           "bm_rank_id", "create"]


class BmCopyType(PrintedEnum):
    """From where to where a copy goes.

    L is memory of this process on its device, H is memory of this process on the host, G is a slot
    of any rank. On a machine without a device, L is memory of the host, too.
    """
    L2G = 0
    G2L = 1
    G2H = 2
    H2G = 3


class BmDataOpType(PrintedEnum):
    """What moves the bytes. The best that reaches a slot is taken, whatever is said here."""
    SDMA = 1
    ROCE = 2


class BmConfig:
    """What initialize() is to do. Timeouts are in seconds, 1 at least."""

    def __init__(self) -> None:
        self._native = self._defaults()

    @staticmethod
    def _defaults():
        native = _structures.BmConfig()
        check(lib.smem_bm_config_init(native))
        return native

    init_timeout = field("initTimeout", 32, "Of initialize(); 120.")
    create_timeout = field("createTimeout", 32, "Of create(); 120.")
    operation_timeout = field("controlOperationTimeout", 32, "Of all else that waits; 120.")
    start_store = switch("startConfigStore", "Serve the store, if this is rank 0; True.")
    start_store_only = switch("startConfigStoreOnly", "Serve the store, take no rank; False.")
    dynamic_world_size = switch("dynamicWorldSize", "Ignored: ranks always come and go; False.")
    unified_address_space = switch("unifiedAddressSpace", "Must be True.")
    auto_ranking = switch("autoRanking", "Take the lowest rank that is free; False.")
    rank_id = rank_field("rankId", "Our rank, without auto_ranking. -1 and 65535 are none.")
    flags = field("flags", 32, "None exist: 0.")

    def __repr__(self) -> str:
        return describe(self)


def initialize(store_url: str, world_size: int, device_id: int, config: BmConfig) -> int:
    """Take a rank of `world_size` (1 to 65535) through the store at "tcp://IPv4:port". Returns 0.

    Calling it again changes nothing until uninitialize().
    """
    return check(lib.smem_bm_init(text(store_url, "store_url"), unsigned(world_size, "world_size"),
                                  unsigned(device_id, "device_id", 16), config._native))


def uninitialize(flags: int = 0) -> None:
    """Destroy all pools and give the rank back."""
    lib.smem_bm_uninit(unsigned(flags, "flags"))


def bm_rank_id() -> int:
    """Our rank; 4294967295 with start_store_only."""
    return ask(NO_RANK, lib.smem_bm_get_rank_id)


class BigMemory(Made):
    """A pool, made by create(). It ends with uninitialize(), or when nobody has it any more."""

    def join(self, flags: int = 0) -> int:
        """Let other ranks reach our slot, and reach theirs. Returns the address of our slot.

        Nobody else has to do anything for it.
        """
        slot = ctypes.c_void_p()
        check(lib.smem_bm_join(self._handle.number, unsigned(flags, "flags"), slot))
        return slot.value

    def leave(self, flags: int = 0) -> None:
        """Take our slot back. Returns when no rank reaches it any more."""
        check(lib.smem_bm_leave(self._handle.number, unsigned(flags, "flags")))

    def local_mem_size(self) -> int:
        """How many bytes our slot has: the size given to create(), rounded up to 2 MiB."""
        return ask(0, lib.smem_bm_get_local_mem_size, self._handle.number)

    def peer_rank_ptr(self, peer_rank: int) -> int:
        """The address of that rank's slot, whether it has joined or not."""
        address = lib.smem_bm_ptr(self._handle.number, unsigned(peer_rank, "peer_rank", 16))
        if not address:
            raise RuntimeError(last_error())
        return address

    def copy_data(self, src_ptr: int, dst_ptr: int, size: int, type: BmCopyType,
                  flags: int = 0) -> None:
        """Copy `size` bytes; returns when they are in place.

        What `type` says must be true of the addresses: the error says what they are.
        """
        check(lib.smem_bm_copy(self._handle.number, pointer(src_ptr, "src_ptr"),
                               pointer(dst_ptr, "dst_ptr"), unsigned(size, "size", 64), type,
                               unsigned(flags, "flags")))


def create(id: int, local_dram_size: int, local_hbm_size: int,
           data_op_type: BmDataOpType = BmDataOpType.SDMA, flags: int = 0) -> BigMemory:
    """Memory of this process for the pool `id`: bytes of the host, bytes of the device.

    One of the two may be 0. A size that is no multiple of 2 MiB is rounded up. All ranks give the
    same sizes; join() makes the memory part of the pool.
    """
    number = lib.smem_bm_create(unsigned(id, "id"), 0, data_op_type,
                                unsigned(local_dram_size, "local_dram_size", 64),
                                unsigned(local_hbm_size, "local_hbm_size", 64),
                                unsigned(flags, "flags"))
    return BigMemory._of(number, lib.smem_bm_destroy)
