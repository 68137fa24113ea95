from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Union

from .enums import ConnType, MemoryType
from .session import Session

__all__ = ["Group", "GroupMember", "allgather", "allreduce", "alltoall", "barrier", "broadcast",
           "init_group", "reduce_scatter"]

# numpy's and torch's arrays.
_Array = Any
_Conn = Union[str, int]

@dataclass(frozen=True)
class GroupMember:
    rank: int
    world: int
    ip: str
    port_ucx: int
    port_rdma: int
    port_ctrl: int
    mem_type: int = ...
    device_id: int = ...
    buffer_size: int = ...
    @property
    def memory_type(self) -> MemoryType: ...
    def port_for(self, conn: ConnType) -> int: ...
    def to_dict(self) -> Dict[str, Any]: ...
    @classmethod
    def from_dict(cls, values: Dict[str, Any]) -> GroupMember: ...

class Group:
    session: Session
    members: List[GroupMember]
    rank: int
    group_id: str
    def __init__(
        self, *, session: Session, members: Sequence[GroupMember], rank: int,
        group_id: str = "default",
    ) -> None: ...
    @property
    def world(self) -> int: ...
    @property
    def me(self) -> GroupMember: ...
    def peer(self, rank: int) -> GroupMember: ...
    @property
    def right(self) -> GroupMember: ...
    @property
    def left(self) -> GroupMember: ...
    def others(self) -> List[int]: ...
    def begin(self) -> None: ...
    def say(self, rank: int, what: int, offset: int = 0) -> None: ...
    def hear(self, rank: int, what: int, timeout: Optional[float] = None) -> int: ...
    def fetch(
        self, rank: int, remote: int, local: int, nbytes: int, conn: int, chunk: int
    ) -> int: ...

def init_group(
    *, session: Session, my_ip: str, port_ucx: int = 0, port_rdma: int = 0, port_ctrl: int = 0,
    group_id: str = "default", ctrl_tcp_port: Optional[int] = None, ctrl_uds_dir: str = "/tmp",
    start_servers: bool = True, server_barrier: bool = True, rank: Optional[int] = None,
    world: Optional[int] = None, store: Optional[str] = None,
    members: Optional[Sequence[GroupMember]] = None, timeout: float = 60,
) -> Group: ...
def barrier(group: Group, *, timeout: Optional[float] = None) -> None: ...
def alltoall(
    group: Group, send: _Array, recv: _Array, *, algo: str = "auto", conn: _Conn = "auto",
    send_bias: int = 0, recv_bias: Optional[int] = None, chunk_bytes: int = ...,
    do_self_copy: bool = True, timeout: Optional[float] = None,
) -> None: ...
def allgather(
    group: Group, send: _Array, recv: _Array, *, conn: _Conn = "auto", send_bias: int = 0,
    recv_bias: Optional[int] = None, chunk_bytes: int = ..., timeout: Optional[float] = None,
) -> None: ...
def broadcast(
    group: Group, data: _Array, *, root: int = 0, conn: _Conn = "auto", bias: int = 0,
    chunk_bytes: int = ..., timeout: Optional[float] = None,
) -> None: ...
def reduce_scatter(
    group: Group, send: _Array, recv: _Array, *, op: str = "sum", conn: _Conn = "auto",
    send_bias: int = 0, recv_bias: Optional[int] = None, chunk_bytes: int = ...,
    timeout: Optional[float] = None,
) -> None: ...
def allreduce(
    group: Group, data: _Array, *, op: str = "sum", conn: _Conn = "auto", send_bias: int = 0,
    recv_bias: Optional[int] = None, chunk_bytes: int = ..., timeout: Optional[float] = None,
) -> None: ...
