from typing import Any, Optional

from . import _core
from .enums import ConnType, MemoryType
from .iobuffer import IOBuffer

# Anything with the buffer protocol, DLPack or __cuda_array_interface__, or a torch tensor.
_Array = Any

def create_session(
    *, device_id: int = 0, buffer_size: int = ..., mem_type: MemoryType = MemoryType.CPU,
    num_chs: int = 1, local_ip: str = "",
) -> Session: ...

class Session(_core.SessionCore):
    buf: IOBuffer
    local_ip: str
    ctrl_uds_dir: str
    id: Optional[int]
    def __init__(
        self, buf: IOBuffer, num_chs: int = 1, *, local_ip: str = "", ctrl_uds_dir: str = "/tmp"
    ) -> None: ...
    def __enter__(self) -> Session: ...
    def __exit__(self, *_: object) -> None: ...
    def set_local_ip(self, ip: str) -> None: ...
    def set_ctrl_uds_dir(self, d: str) -> None: ...
    def init_server(
        self, ip: Optional[str] = None, port: Optional[int] = None,
        conn: Optional[ConnType] = None, *, bind_ip: Optional[str] = None,
        ucx_port: Optional[int] = None, rdma_port: Optional[int] = None,
        ctrl_tcp_port: Optional[int] = None, self_id: Optional[int] = None,
        ctrl_uds_dir: Optional[str] = None,
    ) -> None: ...
    def close_server(self) -> None: ...
    def connect(
        self, ip: Optional[str] = None, port: Optional[int] = None,
        conn: Optional[ConnType] = None, *, peer_id: Optional[int] = None,
        self_id: Optional[int] = None, peer_ip: Optional[str] = None,
        data_port: Optional[int] = None, ctrl_tcp_port: Optional[int] = None,
        uds_dir: Optional[str] = None, timeout: Optional[float] = None,
    ) -> None: ...
    def disconnect(
        self, ip: str, port: Optional[int] = None, conn: Optional[ConnType] = None
    ) -> None: ...
    def check_conn(
        self, ip: str, port: Optional[int] = None, conn: Optional[ConnType] = None
    ) -> bool: ...
    def explain(self, ip: str, port: int) -> str: ...
    def buffer_put_then_put(
        self, ip: str, port: int, data: _Array, *, local_off: int = 0, remote_off: int = 0,
        conn: Optional[ConnType] = None, nbytes: Optional[int] = None,
        device: Optional[str] = None,
    ) -> int: ...
    def get_then_buffer_get_into(
        self, ip: str, port: int, dst: _Array, *, local_off: int = 0, remote_off: int = 0,
        nbytes: Optional[int] = None, conn: Optional[ConnType] = None,
        device: Optional[str] = None,
    ) -> int: ...
    def put(
        self, ip: str, data: _Array, *args: Any, bias: Optional[int] = None,
        conn: Optional[ConnType] = None, size: Optional[int] = None,
        device: Optional[str] = None,
    ) -> int: ...
    def get_into(
        self, ip: str, dest: _Array, *args: Any, bias: Optional[int] = None,
        conn: Optional[ConnType] = None, size: Optional[int] = None,
        device: Optional[str] = None,
    ) -> int: ...
    def get(
        self, ip: Any, size: Any, *args: Any, bias: Optional[int] = None,
        conn: Optional[ConnType] = None,
    ) -> bytes: ...
    def put_torch_cuda(
        self, ip: str, t: _Array, *args: Any, bias: Optional[int] = None,
        conn: Optional[ConnType] = None, size: Optional[int] = None,
    ) -> int: ...
    def get_torch_cuda(
        self, ip: str, t: _Array, *args: Any, bias: Optional[int] = None,
        conn: Optional[ConnType] = None, size: Optional[int] = None,
    ) -> int: ...
    def write_to(
        self, ip: str, ptr_bias: int, size: int, conn: Optional[ConnType] = None
    ) -> None: ...
    def read_from(
        self, ip: str, ptr_bias: int, size: int, conn: Optional[ConnType] = None
    ) -> None: ...
    def send_data_to(
        self, ip: str, port: Optional[int], send_buf_ptr: _Array, buf_size: Optional[int] = None,
        buf_type: Optional[MemoryType] = None, conn: Optional[ConnType] = None,
    ) -> None: ...
    def recv_data_from(
        self, ip: str, port: Optional[int], recv_buf_ptr: _Array, buf_size: Optional[int] = None,
        buf_type: Optional[MemoryType] = None, flag_ptr: Optional[int] = None,
        conn: Optional[ConnType] = None,
    ) -> int: ...
