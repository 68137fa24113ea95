"""Share Memory, later interface: memory of the same size at each of a fixed number of ranks.

    shm.initialize("tcp://10.0.0.1:7000", world_size, rank, device_id, shm.ShmConfig())
    memory = shm.create(id=0, rank_size=world_size, rank_id=rank, local_mem_size=1 << 21)
    assert memory.barrier() == 0
    everybody = memory.all_gather(b"mine")

Functions and methods return 0 or a negative code, which get_last_err_msg() explains. create(),
all_gather() and the properties raise: they have no code to return.
"""

import ctypes

from mf_smem import shm as first
from mf_smem._arguments import PrintedEnum, octets, text, unsigned
from mf_smem._library import lib
from mf_smem.shm import ShmConfig, uninitialize

__all__ = ["ShmConfig", "ShmDataOpType", "ShareMemory", "initialize", "uninitialize", "create"]


class ShmDataOpType(PrintedEnum):
    """How slots of others are reached. Programs may say what they like: the best way is taken."""
    MTE = 1
    SDMA = 2
    RDMA = 4


def initialize(store_url: str, world_size: int, rank_id: int, device_id: int,
               config: ShmConfig) -> int:
    """Open the store at "tcp://IPv4:port" as one of `world_size` ranks.

    Calling it again changes nothing until uninitialize().
    """
    return lib.smem_shm_init(text(store_url, "store_url"), unsigned(world_size, "world_size"),
                             unsigned(rank_id, "rank_id"), unsigned(device_id, "device_id", 16),
                             config._native)


class ShareMemory(first.ShareMemory):
    """Memory of all ranks, made by create(). It ends with destroy(), or when nobody has it."""

    def set_context(self, context: bytes) -> int:
        """1 to 65536 bytes for the device side of this process; replaces what was set before."""
        data = octets(context)
        return lib.smem_shm_set_extra_context(self._handle.number, data, len(data))

    def barrier(self) -> int:
        """Return when all ranks have called it."""
        return lib.smem_shm_control_barrier(self._handle.number)

    def query_support_data_operation(self) -> int:
        """Bits of ShmDataOpType: what ranks of one host have."""
        return lib.smem_shm_query_support_data_operation()

    def topology_can_reach(self, remote_rank: int, reach_info) -> int:
        """How that rank's slot is reached: bits of ShmDataOpType go into reach_info[0].

        `reach_info` is a list, an array or the like with at least one element.
        """
        bits = ctypes.c_uint32()
        code = lib.smem_shm_topology_can_reach(self._handle.number,
                                               unsigned(remote_rank, "remote_rank"), bits)
        if code == 0:
            reach_info[0] = bits.value
        return code

    def destroy(self, flags: int = 0) -> int:
        """Give the memory back. Waits for nobody; other methods fail from then on."""
        unsigned(flags, "flags")
        return self._handle.close() or 0


def create(id: int, rank_size: int, rank_id: int, local_mem_size: int,
           data_op_type: ShmDataOpType = ShmDataOpType.MTE, flags: int = 0) -> ShareMemory:
    """Make the object `id` together with all of `rank_size` ranks; returns when all are there.

    `local_mem_size` bytes of device memory at each, of the host where there is no device; a
    multiple of 2 MiB, or it is rounded up. Raises a RuntimeError that says why.
    """
    return ShareMemory._create(id, rank_size, rank_id, local_mem_size, data_op_type, flags)
