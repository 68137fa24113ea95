"""Big Memory, later interface: the memory of many processes in one address space.

    config = bm.BmConfig()
    bm.initialize("tcp://10.0.0.1:7000", world_size, device_id, config)
    pool = bm.create(id=0, local_dram_size=1 << 30, local_hbm_size=0)
    pool.join()
    theirs = pool.peer_rank_ptr(1, bm.BmMemType.HOST)
    pool.copy_data(tensor.data_ptr(), theirs, 4096, bm.BmCopyType.AUTO)

Functions and methods return 0 or a negative code, which get_last_err_msg() explains; create()
raises. Ranks are chosen by the library unless auto_ranking is False.
"""

from typing import Sequence

from mf_smem import _structures
from mf_smem import bm as first
from mf_smem._arguments import (Made, PrintedEnum, address, numbers, pointer, switch, text,
                                unsigned)
from mf_smem._library import check, lib
from mf_smem.bm import uninitialize

__all__ = ["BmConfig", "BmCopyType", "BmDataOpType", "BmMemType", "BigMemory", "initialize",
           "uninitialize", "bm_rank_id", "create"]


class BmCopyType(PrintedEnum):
    """From where to where a copy goes.

    L is memory of this process on its device, H is memory of this process on the host, G is a slot
    of any rank, GH is the host slot of any rank. AUTO is whatever the addresses say.
    """
    L2G = 0
    G2L = 1
    G2H = 2
    H2G = 3
    L2GH = 4
    GH2L = 5
    GH2H = 6
    H2GH = 7
    G2G = 8
    AUTO = 9


class BmDataOpType(PrintedEnum):
    """What moves the bytes. The best that reaches a slot is taken, whatever is said here."""
    SDMA = 1
    HOST_RDMA = 2
    HOST_TCP = 4
    DEVICE_RDMA = 8
    HOST_URMA = 16


class BmMemType(PrintedEnum):
    """Which slot: on the device or the host, our own or any rank's."""
    LOCAL_DEVICE = 0
    LOCAL_HOST = 1
    DEVICE = 2
    HOST = 3


class BmConfig(first.BmConfig):
    """What initialize() is to do. Timeouts are in seconds, 1 at least."""

    @staticmethod
    def _defaults():
        native = _structures.BmConfigV2()
        check(lib.smem_bm_config_init_v2(native))
        return native

    start_store = switch("startConfigStoreServer",
                         "Serve the store: rank 0, or with auto_ranking whoever can; True.")
    auto_ranking = switch("autoRanking", "Take the lowest rank that is free; True.")

    def set_nic(self, nic: str) -> None:
        """Where other hosts reach this process: "tcp://IPv4:port"; port 0 picks one."""
        longest = _structures.BmConfigV2.hcomUrl.size - 1
        url = text(nic, "nic")
        if len(url) > longest:
            raise ValueError("nic has {} bytes, {} are the most".format(len(url), longest))
        self._native.hcomUrl = url


def initialize(store_url: str, world_size: int, device_id: int, config: BmConfig) -> int:
    """Take a rank of `world_size` through the store at "tcp://IPv4:port".

    Calling it again changes nothing until uninitialize().
    """
    return lib.smem_bm_init_v2(text(store_url, "store_url"), unsigned(world_size, "world_size"),
                               unsigned(device_id, "device_id", 16), config._native)


def bm_rank_id() -> int:
    """Our rank; 4294967295 before initialize()."""
    return lib.smem_bm_get_rank_id()


class BigMemory(Made):
    """A pool, made by create(). It ends with destroy(), or when nobody has it any more."""

    def join(self, flags: int = 0) -> int:
        """Let other ranks reach our slots, and reach theirs. Nobody else has to do anything."""
        return lib.smem_bm_join_v2(self._handle.number, unsigned(flags, "flags"))

    def leave(self, flags: int = 0) -> int:
        """Take our slots back; returns when no rank reaches them any more."""
        return lib.smem_bm_leave(self._handle.number, unsigned(flags, "flags"))

    def local_mem_size(self, mem_type: BmMemType = BmMemType.DEVICE) -> int:
        """How many bytes our slot of that kind has; 0 on failure."""
        return lib.smem_bm_get_local_mem_size_by_mem_type(self._handle.number, mem_type)

    def peer_rank_ptr(self, peer_rank: int, mem_type: BmMemType = BmMemType.DEVICE) -> int:
        """The address of that rank's slot, the same in every process; 0 on failure."""
        return lib.smem_bm_ptr_by_mem_type(self._handle.number, mem_type,
                                           unsigned(peer_rank, "peer_rank", 16)) or 0

    def get_rank_id_by_gva(self, gva: int) -> int:
        """Whose slot an address lies in; 4294967295 when it is nobody's."""
        return lib.smem_bm_get_rank_id_by_gva(self._handle.number, pointer(gva, "gva"))

    def copy_data(self, src_ptr: int, dst_ptr: int, size: int, type: BmCopyType,
                  flags: int = 0) -> int:
        """Copy `size` bytes. Flag 1 returns at once: wait() waits then."""
        params = _structures.CopyParams(pointer(src_ptr, "src_ptr"), pointer(dst_ptr, "dst_ptr"),
                                        unsigned(size, "size", 64))
        return lib.smem_bm_copy_v2(self._handle.number, params, type, unsigned(flags, "flags"))

    def copy_data_batch(self, src_addrs: Sequence[int], dst_addrs: Sequence[int],
                        sizes: Sequence[int], count: int, type: BmCopyType, flags: int = 0) -> int:
        """The first `count` copies of the three lists, in any order.

        Each goes where its own addresses say. If one fails, all others are made nevertheless.
        """
        sources = numbers(src_addrs, "src_addrs")
        targets = numbers(dst_addrs, "dst_addrs")
        lengths = numbers(sizes, "sizes")
        shortest = min(len(sources), len(targets), len(lengths))
        if unsigned(count, "count") > shortest:
            raise ValueError("count is {}, but a list has only {}".format(count, shortest))
        params = _structures.BatchCopyParams(address(sources), address(targets), address(lengths),
                                             count)
        return lib.smem_bm_copy_batch(self._handle.number, params, type, unsigned(flags, "flags"))

    def wait(self) -> int:
        """Wait for all copies that this thread began with flag 1."""
        return lib.smem_bm_wait(self._handle.number)

    def register(self, addr: int, size: int) -> int:
        """Let copies between this memory and other hosts need no buffer, until unregister()."""
        return lib.smem_bm_register_user_mem(self._handle.number, pointer(addr, "addr"),
                                             unsigned(size, "size", 64))

    def unregister(self, addr: int) -> int:
        """What register() was given."""
        return lib.smem_bm_unregister_user_mem(self._handle.number, pointer(addr, "addr"))

    def destroy(self) -> None:
        """Leave, and give the memory back. Other methods fail from then on."""
        self._handle.close()


def create(id: int, local_dram_size: int, local_hbm_size: int,
           data_op_type: BmDataOpType = BmDataOpType.SDMA, flags: int = 0) -> BigMemory:
    """Memory of this process for the pool `id`: bytes of the host, bytes of the device.

    One of the two may be 0. A size that is no multiple of 2 MiB is rounded up. Bits 0 to 6 of
    `flags` choose the NUMA node of host memory, 127 is any. Raises a RuntimeError that says why.
    """
    option = _structures.BmCreateOption(
        localDRAMSize=unsigned(local_dram_size, "local_dram_size", 64),
        localHBMSize=unsigned(local_hbm_size, "local_hbm_size", 64),
        dataOpType=data_op_type, flags=unsigned(flags, "flags"))
    return BigMemory._of(lib.smem_bm_create2(unsigned(id, "id"), option), lib.smem_bm_destroy)
