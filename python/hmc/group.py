"""Groups of sessions: who the members are, how they find each other, and their messages."""

from __future__ import annotations

import sys
import zlib
from dataclasses import asdict, dataclass

from . import rendezvous
from .enums import ConnType, MemoryType
from .errors import HMCError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Sequence
    from .session import Session

# What a message says: a part is ready to fetch, it has been taken, the sender is at the barrier.
READY, TAKEN, BARRIER = 1, 2, 3


@dataclass(frozen=True)
class GroupMember:
    """One rank: where it listens and what its buffer is."""

    rank: int
    world: int
    ip: str
    port_ucx: int
    port_rdma: int
    port_ctrl: int
    mem_type: int = int(MemoryType.CPU)
    device_id: int = 0
    buffer_size: int = 0

    @property
    def memory_type(self) -> MemoryType:
        return MemoryType(self.mem_type)

    def port_for(self, conn: int) -> int:
        """The data port for a ConnType."""
        wanted = self.port_rdma if conn == ConnType.RDMA else self.port_ucx
        return wanted or self.port_ucx or self.port_rdma

    def to_dict(self) -> Dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Dict[str, Any]) -> GroupMember:
        return cls(**values)


class Group:
    """The members of a group, and which of them this process is."""

    def __init__(self, *, session: Session, members: Sequence[GroupMember], rank: int,
                 group_id: str = "default") -> None:
        ranks = sorted(member.rank for member in members)
        if ranks != list(range(len(members))):
            raise ValueError("the members' ranks are %s: each of 0 to %d must be there once"
                             % (ranks, len(members) - 1))
        if not 0 <= rank < len(members):
            raise ValueError("rank is %d: the group has ranks 0 to %d" % (rank, len(members) - 1))
        self.session = session
        self.members = sorted(members, key=lambda member: member.rank)
        self.rank = rank
        self.group_id = group_id
        self._mark = zlib.crc32(group_id.encode()) & 0xff
        self._step = 0

    @property
    def world(self) -> int:
        return len(self.members)

    @property
    def me(self) -> GroupMember:
        return self.members[self.rank]

    def peer(self, rank: int) -> GroupMember:
        return self.members[rank]

    @property
    def right(self) -> GroupMember:
        return self.members[(self.rank + 1) % self.world]

    @property
    def left(self) -> GroupMember:
        return self.members[(self.rank - 1) % self.world]

    def others(self) -> List[int]:
        """The other ranks, starting with our right neighbour."""
        return [(self.rank + step) % self.world for step in range(1, self.world)]

    def begin(self) -> None:
        """Start a new operation, whose messages differ from those of the one before."""
        self._step = (self._step + 1) & 0x3fff

    def say(self, rank: int, what: int, offset: int = 0) -> None:
        """Send `what` to a rank, with an offset in our buffer."""
        self.session.ctrl_send(rank, what << 62 | self._mark << 54 | self._step << 40 | offset)

    def hear(self, rank: int, what: int, timeout: Optional[float] = None) -> int:
        """Wait for a rank to send `what`; return its offset."""
        tag = self.session.ctrl_recv(rank, timeout)
        wanted = what << 22 | self._mark << 14 | self._step
        if tag >> 40 != wanted:
            raise HMCError("rank %d is in another operation than rank %d of group %r: all ranks "
                           "must call the same operations in the same order, and send no other "
                           "tags in between" % (rank, self.rank, self.group_id))
        return tag & (1 << 40) - 1

    def fetch(self, rank: int, remote: int, local: int, nbytes: int, conn: int, chunk: int) -> int:
        """Start to copy bytes of a rank's buffer into ours; return an id for Session.wait()."""
        if nbytes == 0:
            return 0
        peer = self.members[rank]
        if nbytes <= chunk:
            return self.session.get_nb(peer.ip, peer.port_for(conn), local, remote, nbytes, conn)
        self.session.get_pipeline(peer.ip, peer.port_for(conn), local, remote, nbytes,
                                  chunk_size=chunk, conn=conn)
        return 0


def init_group(*, session: Session, my_ip: str, port_ucx: int = 0, port_rdma: int = 0,
               port_ctrl: int = 0, group_id: str = "default", ctrl_tcp_port: Optional[int] = None,
               ctrl_uds_dir: str = "/tmp", start_servers: bool = True, server_barrier: bool = True,
               rank: Optional[int] = None, world: Optional[int] = None,
               store: Optional[str] = None, members: Optional[Sequence[GroupMember]] = None,
               timeout: float = 60) -> Group:
    """Make a Group of this session and those of the other processes, and connect them all.

    There are three ways to say who takes part: `members`, the list of all, with our `rank`;
    `store`, an address such as "10.0.0.1:29500" at which rank 0 collects the others, with `rank`
    and `world`; or, without either, torch.distributed, which must be initialised. The others have
    `timeout` seconds to connect.
    """
    dist = None
    if members is None and store is None:
        dist = _torch_distributed()
        rank, world = dist.get_rank(), dist.get_world_size()
    elif members is not None:
        world = len(members)
    if rank is None or world is None:
        raise TypeError("init_group needs rank= (and with store= also world=)")
    port_ctrl = port_ctrl or ctrl_tcp_port or 0
    me = GroupMember(rank, world, my_ip, port_ucx, port_rdma, port_ctrl, int(session.buf.mem_type),
                     session.buf.device_id, session.buf.size)
    if start_servers and world > 1:
        session.init_server(bind_ip=my_ip, ucx_port=port_ucx, rdma_port=port_rdma,
                            ctrl_tcp_port=port_ctrl, self_id=rank, ctrl_uds_dir=ctrl_uds_dir)
    if members is None:
        members = [GroupMember.from_dict(one)
                   for one in _everyone(me.to_dict(), rank, world, store, dist, timeout)]
    group = Group(session=session, members=members, rank=rank, group_id=group_id)
    for peer in group.members[:rank]:
        session.connect(peer_id=peer.rank, self_id=rank, peer_ip=peer.ip,
                        data_port=peer.port_for(ConnType.AUTO), ctrl_tcp_port=peer.port_ctrl,
                        uds_dir=ctrl_uds_dir, conn=ConnType.AUTO, timeout=timeout)
    if server_barrier:
        barrier(group, timeout=timeout)
    return group


def barrier(group: Group, *, timeout: Optional[float] = None) -> None:
    """Return when every rank has called it."""
    group.begin()
    distance = 1
    while distance < group.world:
        group.say((group.rank + distance) % group.world, BARRIER)
        group.hear((group.rank - distance) % group.world, BARRIER, timeout)
        distance *= 2


def _everyone(mine: Dict[str, Any], rank: int, world: int, store: Optional[str], dist: Any,
              timeout: float) -> List[Dict[str, Any]]:
    if world == 1:
        return [mine]
    if store is not None:
        return rendezvous.gather(store, rank, world, mine, timeout)
    everyone: List[Any] = [None] * world
    dist.all_gather_object(everyone, mine)
    return everyone


def _torch_distributed() -> Any:
    torch = sys.modules.get("torch")
    dist = getattr(torch, "distributed", None)
    if dist is None or not dist.is_available() or not dist.is_initialized():
        raise HMCError("init_group was given neither members= nor store=, and torch.distributed is "
                       "not initialised: call torch.distributed.init_process_group() first, or "
                       "pass rank=, world= and store=\"HOST:PORT\"")
    return dist
