"""TransferEngine: bytes between registered memory of two processes, by address.

Each engine has a session id and finds the others through a store:

    engine = TransferEngine()
    session = "{}:{}".format(my_ip, engine.get_rpc_port())
    engine.initialize("tcp://10.0.0.1:7000", session, "Prefill", device_id)
    engine.register_memory(tensor.data_ptr(), tensor.nbytes)
    engine.transfer_sync_write(their_session, tensor.data_ptr(), their_address, tensor.nbytes)

Methods return 0 or a negative code, which get_last_err_msg() explains. Memory that others read or
write must be registered there; what this process reads and writes of its own need not be, but is
quicker if it is. Registered memory can be reached as soon as register_memory() has returned, and no
more as soon as unregister_memory() has.
"""

import random
import socket
from typing import Sequence

from mf_smem import _structures
from mf_smem._arguments import Handle, PrintedEnum, address, numbers, pointer, text, unsigned
from mf_smem._library import check, lib

__all__ = ["TransferEngine", "TransferOpcode", "TransDataOpType"]


class TransferOpcode(PrintedEnum):
    """What a transfer does with the peer's memory."""
    Read = 0
    Write = 1


class TransDataOpType(PrintedEnum):
    """What moves the bytes. The best that reaches the memory is taken, whatever is said here."""
    SDMA = 1
    HOST_RDMA = 2
    HOST_TCP = 4
    DEVICE_RDMA = 8


# As smem_trans_role_t has them. Any engine may read and write at any other, whatever their roles.
ROLES = {"Prefill": 1, "Decode": 2, "Both": 3}
NO_DEVICE = 0xFFFFFFFF
ERROR = -1  # SMEM_ERROR: C answers no handle, and the sentence says why
PORTS = range(15000, 25001)


class _Batch:
    """Lists of addresses and sizes as C takes them."""

    def __init__(self, buffers, peer_buffers, lengths):
        self.local = numbers(buffers, "buffers")
        self.remote = numbers(peer_buffers, "peer_buffers")
        self.sizes = numbers(lengths, "lengths")
        if not len(self.local) == len(self.remote) == len(self.sizes):
            raise ValueError("{} buffers, {} peer_buffers and {} lengths: as many of each".format(
                len(self.local), len(self.remote), len(self.sizes)))

    def arguments(self, session):
        return (address(self.local), text(session, "dest_session"), address(self.remote),
                address(self.sizes), len(self.sizes))


def _single(session, buffer, peer_buffer, length):
    return (pointer(buffer, "buffer"), text(session, "dest_session"),
            pointer(peer_buffer, "peer_buffer"), unsigned(length, "length", 64))


class TransferEngine:
    """Moves bytes between memory of this process and memory that others have registered."""

    TransferOpcode = TransferOpcode
    TransDataOpType = TransDataOpType

    def __init__(self) -> None:
        self._handle = None
        self._ports = []

    @property
    def _number(self):
        return self._handle.number if self._handle else None

    def get_rpc_port(self) -> int:
        """A free port of 15000 to 25000, which stays taken until destroy(); -1 when there is none.

        With the address of this host it makes a session id that no other engine has.
        """
        for port in random.sample(PORTS, len(PORTS)):
            taken = socket.socket()
            try:
                taken.bind(("", port))
                taken.listen()
            except OSError:
                taken.close()
                continue
            self._ports.append(taken)
            return port
        return -1

    def initialize(self, store_url: str, session_id: str, role: str, device_id: int,
                   data_op_type: TransDataOpType = TransDataOpType.SDMA) -> int:
        """Tell the store at "tcp://IPv4:port" of this engine.

        `role` is "Prefill", "Decode" or "Both". `device_id` is ignored on a machine without
        accelerators; -1 is none. create_config_store() serves a store.
        """
        config = _structures.TransConfig()
        check(lib.smem_trans_config_init(config))
        config.role = ROLES.get(role, 0)
        config.deviceId = NO_DEVICE if device_id == -1 else unsigned(device_id, "device_id")
        config.dataOpType = data_op_type
        started = lib.smem_trans_init(config)
        if started != 0:
            return started
        number = lib.smem_trans_create(text(store_url, "store_url"), text(session_id, "session_id"),
                                       config)
        if not number:
            return ERROR
        self._handle = Handle(number, lambda old: lib.smem_trans_destroy(old, 0))
        return 0

    def register_memory(self, buffer_addr: int, capacity: int) -> int:
        """Let others read and write this memory."""
        return lib.smem_trans_register_mem(self._number, pointer(buffer_addr, "buffer_addr"),
                                           unsigned(capacity, "capacity", 64), 0)

    def unregister_memory(self, buffer_addr: int) -> int:
        """Take it back: when this returns, nobody reads or writes it any more."""
        return lib.smem_trans_deregister_mem(self._number, pointer(buffer_addr, "buffer_addr"))

    def batch_register_memory(self, buffer_addrs: Sequence[int], capacities: Sequence[int]) -> int:
        """register_memory() for each; all of them or none."""
        addresses = numbers(buffer_addrs, "buffer_addrs")
        sizes = numbers(capacities, "capacities")
        if len(addresses) != len(sizes):
            raise ValueError("{} buffer_addrs and {} capacities: as many of each".format(
                len(addresses), len(sizes)))
        return lib.smem_trans_batch_register_mem(self._number, address(addresses), address(sizes),
                                                 len(sizes), 0)

    def transfer_sync_write(self, dest_session: str, buffer: int, peer_buffer: int, length: int,
                            flags: int = 0) -> int:
        """Copy from `buffer` here to `peer_buffer` there; returns when the bytes are there."""
        return lib.smem_trans_write(self._number,
                                    *_single(dest_session, buffer, peer_buffer, length),
                                    unsigned(flags, "flags"))

    def transfer_sync_read(self, dest_session: str, buffer: int, peer_buffer: int, length: int,
                           flags: int = 0) -> int:
        """Copy from `peer_buffer` there to `buffer` here; returns when the bytes are here."""
        return lib.smem_trans_read(self._number,
                                   *_single(dest_session, buffer, peer_buffer, length),
                                   unsigned(flags, "flags"))

    def batch_transfer_sync_write(self, dest_session: str, buffers: Sequence[int],
                                  peer_buffers: Sequence[int], lengths: Sequence[int],
                                  flags: int = 0) -> int:
        """transfer_sync_write() for each, in any order."""
        batch = _Batch(buffers, peer_buffers, lengths)
        return lib.smem_trans_batch_write(self._number, *batch.arguments(dest_session),
                                          unsigned(flags, "flags"))

    def batch_transfer_sync_read(self, dest_session: str, buffers: Sequence[int],
                                 peer_buffers: Sequence[int], lengths: Sequence[int],
                                 flags: int = 0) -> int:
        """transfer_sync_read() for each, in any order."""
        batch = _Batch(buffers, peer_buffers, lengths)
        return lib.smem_trans_batch_read(self._number, *batch.arguments(dest_session),
                                         unsigned(flags, "flags"))

    def transfer_async_write_submit(self, dest_session: str, buffer: int, peer_buffer: int,
                                    length: int, stream: int, flags: int = 0) -> int:
        """transfer_sync_write() in the order of a device's stream, whose handle is a number.

        It reads `buffer` after what was enqueued before, and what is enqueued afterwards runs when
        it has ended. Memory of the host has no stream: it is copied before this returns.
        """
        return lib.smem_trans_write_submit(self._number,
                                           *_single(dest_session, buffer, peer_buffer, length),
                                           pointer(stream, "stream"), unsigned(flags, "flags"))

    def transfer_async_read_submit(self, dest_session: str, buffer: int, peer_buffer: int,
                                   length: int, stream: int, flags: int = 0) -> int:
        """transfer_sync_read() in the order of a stream, as transfer_async_write_submit()."""
        return lib.smem_trans_read_submit(self._number,
                                          *_single(dest_session, buffer, peer_buffer, length),
                                          pointer(stream, "stream"), unsigned(flags, "flags"))

    def batch_transfer_async_write_submit(self, dest_session: str, buffers: Sequence[int],
                                          peer_buffers: Sequence[int], lengths: Sequence[int],
                                          stream: int, flags: int = 0) -> int:
        """batch_transfer_sync_write() in the order of a stream."""
        batch = _Batch(buffers, peer_buffers, lengths)
        return lib.smem_trans_batch_write_submit(self._number, *batch.arguments(dest_session),
                                                 pointer(stream, "stream"),
                                                 unsigned(flags, "flags"))

    def batch_transfer_async_read_submit(self, dest_session: str, buffers: Sequence[int],
                                         peer_buffers: Sequence[int], lengths: Sequence[int],
                                         stream: int, flags: int = 0) -> int:
        """batch_transfer_sync_read() in the order of a stream."""
        batch = _Batch(buffers, peer_buffers, lengths)
        return lib.smem_trans_batch_read_submit(self._number, *batch.arguments(dest_session),
                                                pointer(stream, "stream"),
                                                unsigned(flags, "flags"))

    def destroy(self) -> None:
        """Take all registered memory back and leave the store. initialize() may follow."""
        if self._handle:
            self._handle.close()
        while self._ports:
            self._ports.pop().close()

    def unInitialize(self) -> None:
        """The same as destroy(): other engines of this process go on."""
        self.destroy()
