"""Groups of sessions: who the members are, how they find each other, and their messages."""

from __future__ import annotations

import json
import os
import sys
import time
import zlib
from dataclasses import asdict, dataclass, replace

from . import _core
from .enums import ConnType, MemoryType
from .errors import DeadlineExceeded, HMCError, NotConnected, PeerLost
from .session import create_session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Sequence
    from .session import Session

_OWN_BUFFER = 1 << 20

# What a message says: the sender is connected, a part is ready to fetch, it has been taken, the
# sender is at the barrier.
HELLO, READY, TAKEN, BARRIER = 0, 1, 2, 3


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
        # Moves host memory without the session's buffer; init_group() makes it.
        self.core: Optional[_core.Collective] = None

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
        """Start to copy bytes of a rank's buffer into ours; return an id for finish()."""
        if nbytes == 0:
            return 0
        peer = self.members[rank]
        try:
            if nbytes <= chunk:
                return self.session.get_nb(peer.ip, peer.port_for(conn), local, remote, nbytes,
                                           conn)
            self.session.get_pipeline(peer.ip, peer.port_for(conn), local, remote, nbytes,
                                      chunk_size=chunk, conn=conn)
        except HMCError as error:
            raise _named(rank, error) from None
        return 0

    def finish(self, rank: int, fetched: int) -> None:
        """Wait for what fetch() returned."""
        try:
            self.session.wait(fetched)
        except HMCError as error:
            raise _named(rank, error) from None


def _named(rank: int, error: HMCError) -> HMCError:
    # All were connected when the group came to be.
    if isinstance(error, NotConnected):
        return PeerLost("rank %d: %s" % (rank, error))
    return type(error)("rank %d: %s" % (rank, error))


def init_group(*, session: Optional[Session] = None, my_ip: str = "", port_ucx: int = 0,
               port_rdma: int = 0, port_ctrl: int = 0, group_id: str = "default",
               ctrl_tcp_port: Optional[int] = None, ctrl_uds_dir: str = "/tmp",
               start_servers: bool = True, server_barrier: bool = True,
               rank: Optional[int] = None, world: Optional[int] = None,
               store: Optional[str] = None, members: Optional[Sequence[GroupMember]] = None,
               timeout: float = 60) -> Group:
    """Make a Group of this session and those of the other processes, and connect them all.

    Without a session the group makes its own, with a small buffer: host memory does not need it.
    `members`, the list of all, with our `rank`, says who takes part. Without it and without
    `store`, torch.distributed says so if it is initialised. Else the ranks meet at `store`, an
    address such as "10.0.0.1:29500", which rank 0 serves if nobody does; what is left out of
    `store`, `rank` and `world` is the launcher's (hmc pool run, torchrun, mpirun, srun).

    Without `my_ip`, the session's local_ip or the address that reaches the store is ours. Without
    ports, the system picks one. With CTRL_TRANSPORT=uds, tags go through unix sockets in
    `ctrl_uds_dir`. All ranks have `timeout` seconds to come and to connect.
    """
    end = time.monotonic() + timeout
    if session is None:
        session = create_session(buffer_size=_OWN_BUFFER)
    gathering = None
    dist = _torch_distributed() if members is None and store is None else None
    if members is not None:
        world = len(members)
    elif dist is not None:
        rank, world = dist.get_rank(), dist.get_world_size()
    else:
        gathering = _core.Gathering(_url(store), rank, world or 0, group_id)
        rank, world = gathering.rank, gathering.size
    if rank is None or world is None:
        raise TypeError("init_group with members= needs rank=, too")
    my_ip = my_ip or session.local_ip or (gathering or _core.Gathering("", rank, world)).host
    # Every group on this host has sockets of the same names, so they are only used on request.
    folder = ctrl_uds_dir if os.environ.get("CTRL_TRANSPORT", "").lower() == "uds" else ""
    me = GroupMember(rank, world, my_ip, port_ucx, port_rdma, port_ctrl or ctrl_tcp_port or 0,
                     int(session.buf.mem_type), session.buf.device_id, session.buf.size)
    if start_servers and world > 1:
        me = _listen(session, me, folder)
    try:
        if gathering is not None:
            told = gathering.wait(json.dumps(me.to_dict()).encode(), _left(end))
            members = [GroupMember.from_dict(json.loads(one)) for one in told]
        elif dist is not None:
            members = [me] * world
            dist.all_gather_object(members, me)
        group = Group(session=session, members=members or [me], rank=rank, group_id=group_id)
        _connect(group, folder, end)
        # An accelerator's buffers are fetched from each other, without the host.
        if all(member.mem_type == MemoryType.CPU for member in group.members):
            group.core = _meet_in_core(group, end)
    finally:
        # Rank 0's store ends here: every rank that has greeted it needs the store no more.
        gathering = None
    if server_barrier:
        barrier(group, timeout=_left(end))
    return group


def _listen(session: Session, me: GroupMember, folder: str) -> GroupMember:
    """Listen at the ports of `me`, or at one that the system picks; return where we listen."""
    if not me.port_ucx and not me.port_rdma:
        me = replace(me, port_ucx=session._pick_port(me.ip))
    session.init_server(bind_ip=me.ip, ucx_port=me.port_ucx, rdma_port=me.port_rdma,
                        ctrl_tcp_port=me.port_ctrl, self_id=me.rank, ctrl_uds_dir=folder)
    return me


def barrier(group: Group, *, timeout: Optional[float] = None) -> None:
    """Return when every rank has called it."""
    group.begin()
    distance = 1
    while distance < group.world:
        group.say((group.rank + distance) % group.world, BARRIER)
        group.hear((group.rank - distance) % group.world, BARRIER, timeout)
        distance *= 2


def _connect(group: Group, folder: str, end: float) -> None:
    """Return when this rank is connected to all others.

    Each dials the lower ones and greets them, and hears the greetings of the higher ones.
    """
    for peer in group.members:
        try:
            if peer.rank < group.rank:
                group.session.connect(
                    peer_id=peer.rank, self_id=group.rank, peer_ip=peer.ip,
                    data_port=peer.port_for(ConnType.AUTO), ctrl_tcp_port=peer.port_ctrl,
                    uds_dir=folder, conn=ConnType.AUTO, timeout=_left(end))
                group.say(peer.rank, HELLO)
            elif peer.rank > group.rank:
                group.hear(peer.rank, HELLO, _left(end))
        except HMCError as error:
            if _left(end) > 0.01:  # the core counts in milliseconds
                raise
            raise DeadlineExceeded("rank %d of %d did not connect in time: %s"
                                   % (peer.rank, group.world, error)) from None


def _meet_in_core(group: Group, end: float) -> _core.Collective:
    """Tell each other a port by tags, and connect the collectives of C++."""
    host = "[%s]" % group.me.ip if ":" in group.me.ip else group.me.ip
    # Without a secret they listen on networks, too, as the sessions do.
    core = _core.Collective(group.rank, group.world, group.group_id, "tcp://%s:0" % host,
                            insecure=True)
    group.begin()
    addresses = [core.address] * group.world
    for rank in group.others():
        group.say(rank, READY, int(core.address.rpartition(":")[2]))
    for rank in group.others():
        port = group.hear(rank, READY, _left(end))
        ip = group.members[rank].ip
        addresses[rank] = ("tcp://[%s]:%d" if ":" in ip else "tcp://%s:%d") % (ip, port)
    core.connect(addresses, _left(end))
    return core


def _left(end: float) -> float:
    return max(end - time.monotonic(), 0.001)


def _url(store: Optional[str]) -> str:
    return "tcp://" + store if store and "://" not in store else store or ""


def _torch_distributed() -> Any:
    """torch.distributed if it is initialised."""
    dist = getattr(sys.modules.get("torch"), "distributed", None)
    return dist if dist is not None and dist.is_available() and dist.is_initialized() else None
