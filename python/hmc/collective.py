"""Collective operations of a group of sessions: every rank calls the same ones in the same order.

Each rank lays its part into its own buffer and says where; the others fetch what is theirs and say so.
Nothing is received by copy on the way, and any number of ranks works. The arrays that are passed go
through the session's buffer, whose contents from `send_bias` on are overwritten.
"""

import sys
import zlib
from dataclasses import asdict, dataclass

from . import arrays, rendezvous
from .enums import ConnType, MemoryType
from .errors import HMCError

__all__ = ["Group", "GroupMember", "allgather", "allreduce", "alltoall", "barrier", "broadcast",
           "init_group", "reduce_scatter"]

_READY, _TAKEN, _BARRIER = 1, 2, 3
_CHUNK = 4 * 1024 * 1024


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
    def memory_type(self):
        return MemoryType(self.mem_type)

    def port_for(self, conn):
        """The data port for a ConnType."""
        wanted = self.port_rdma if conn == ConnType.RDMA else self.port_ucx
        return wanted or self.port_ucx or self.port_rdma

    def to_dict(self):
        return asdict(self)

    @classmethod
    def from_dict(cls, values):
        return cls(**values)


class Group:
    """The members of a group and which of them we are."""

    def __init__(self, *, session, members, rank, group_id="default"):
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
    def world(self):
        return len(self.members)

    @property
    def me(self):
        return self.members[self.rank]

    def peer(self, rank):
        return self.members[rank]

    @property
    def right(self):
        return self.members[(self.rank + 1) % self.world]

    @property
    def left(self):
        return self.members[(self.rank - 1) % self.world]

    def others(self):
        """The other ranks, beginning with our right neighbour."""
        return [(self.rank + step) % self.world for step in range(1, self.world)]

    def begin(self):
        """A new operation: its messages are told from those of the one before."""
        self._step = (self._step + 1) & 0x3fff

    def say(self, rank, what, offset=0):
        self.session.ctrl_send(rank, what << 62 | self._mark << 54 | self._step << 40 | offset)

    def hear(self, rank, what, timeout=None):
        """The offset that the rank said with `what`, waiting for it."""
        tag = self.session.ctrl_recv(rank, timeout)
        wanted = what << 22 | self._mark << 14 | self._step
        if tag >> 40 != wanted:
            raise HMCError("rank %d is in another operation than rank %d of group %r: all ranks must "
                           "call the same ones in the same order, and no other tags in between"
                           % (rank, self.rank, self.group_id))
        return tag & (1 << 40) - 1

    def fetch(self, rank, remote, local, nbytes, conn, chunk):
        """Starts to get bytes of a rank's buffer into ours; an id for Session.wait()."""
        if nbytes == 0:
            return 0
        peer = self.members[rank]
        if nbytes <= chunk:
            return self.session.get_nb(peer.ip, peer.port_for(conn), local, remote, nbytes, conn)
        self.session.get_pipeline(peer.ip, peer.port_for(conn), local, remote, nbytes,
                                  chunk_size=chunk, conn=conn)
        return 0


def init_group(*, session, my_ip, port_ucx=0, port_rdma=0, port_ctrl=0, group_id="default",
               ctrl_tcp_port=None, ctrl_uds_dir="/tmp", start_servers=True, server_barrier=True,
               rank=None, world=None, store=None, members=None, timeout=60):
    """Makes a Group of this session and those of the other processes, and connects all of them.

    Who takes part is found out in one of three ways: `members`, the list of all, with our `rank`;
    `store`, an address such as "10.0.0.1:29500" at which rank 0 collects the others, with `rank` and
    `world`; or, without these, torch.distributed, which must be initialised. `timeout` is how many
    seconds the others may take to come.
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
                   for one in _everybody(me.to_dict(), rank, world, store, dist, timeout)]
    group = Group(session=session, members=members, rank=rank, group_id=group_id)
    for peer in group.members[:rank]:
        session.connect(peer_id=peer.rank, self_id=rank, peer_ip=peer.ip,
                        data_port=peer.port_for(ConnType.AUTO), ctrl_tcp_port=peer.port_ctrl,
                        uds_dir=ctrl_uds_dir, conn=ConnType.AUTO, timeout=timeout)
    if server_barrier:
        barrier(group, timeout=timeout)
    return group


def _everybody(mine, rank, world, store, dist, timeout):
    if world == 1:
        return [mine]
    if dist is None:
        return rendezvous.gather(store, rank, world, mine, timeout)
    everybody = [None] * world
    dist.all_gather_object(everybody, mine)
    return everybody


def _torch_distributed():
    torch = sys.modules.get("torch")
    dist = getattr(torch, "distributed", None)
    if dist is None or not dist.is_available() or not dist.is_initialized():
        raise HMCError("init_group was given neither members= nor store=, and torch.distributed is "
                       "not initialised: call torch.distributed.init_process_group() first, or pass "
                       "rank=, world= and store=\"HOST:PORT\"")
    return dist


def _conn(conn):
    return ConnType.AUTO if conn == "auto" else ConnType(conn)


def barrier(group, *, timeout=None):
    """Returns when every rank has called it."""
    group.begin()
    distance = 1
    while distance < group.world:
        group.say((group.rank + distance) % group.world, _BARRIER)
        group.hear((group.rank - distance) % group.world, _BARRIER, timeout)
        distance *= 2


def _release(group, ranks, timeout):
    """Our part may be overwritten when all have taken it."""
    for rank in ranks:
        group.hear(rank, _TAKEN, timeout)


def _exchange(group, offer, want, conn, chunk, timeout, one_by_one=False):
    """Everybody fetches from everybody.

    offer(rank) is where in our buffer the rank's part lies; want(rank) is (offset, size) of where its
    part for us goes.
    """
    others = group.others()
    ids = {}
    for rank in others:
        if not one_by_one:
            group.say(rank, _READY, offer(rank))
    for rank in reversed(others):
        if one_by_one:
            # The mirror image of whom we hear, so that each step is a ring.
            group.say((2 * group.rank - rank) % group.world, _READY,
                      offer((2 * group.rank - rank) % group.world))
        place, size = want(rank)
        ids[rank] = group.fetch(rank, group.hear(rank, _READY, timeout), place, size, conn, chunk)
        if one_by_one:
            group.session.wait(ids[rank])
    for rank in reversed(others):
        group.session.wait(0 if one_by_one else ids[rank])
        group.say(rank, _TAKEN)
    _release(group, others, timeout)


def _check_buffer(group, end):
    if end > group.session.buf.size:
        raise ValueError("this needs %d bytes of the session's buffer, which has %d: create the "
                         "session with a larger buffer_size" % (end, group.session.buf.size))


def _areas(group, send_bias, recv_bias, send_bytes, recv_bytes):
    if recv_bias is None:
        recv_bias = send_bias + send_bytes
    _check_buffer(group, max(send_bias + send_bytes, recv_bias + recv_bytes))
    return send_bias, recv_bias


def alltoall(group, send, recv, *, algo="auto", conn="auto", send_bias=0, recv_bias=None,
             chunk_bytes=_CHUNK, do_self_copy=True, timeout=None):
    """Part i of `send` goes to rank i, whose part r it becomes when we are rank r.

    Both are arrays of the same number of bytes, which the number of ranks divides. algo="direct"
    fetches from all ranks at once, "ring" from one after the other; "auto" is direct up to 8 ranks.
    conn="auto" is the best that a pair of ranks has.
    """
    if algo not in ("auto", "direct", "ring"):
        raise ValueError("algo is %r: it must be auto, direct or ring" % (algo,))
    total = arrays.span_of(send).nbytes
    room = arrays.destination(recv).nbytes
    if total != room or total % group.world:
        raise ValueError("send has %d bytes and recv %d: both must be the same multiple of the %d "
                         "ranks" % (total, room, group.world))
    part = total // group.world
    send_at, recv_at = _areas(group, send_bias, recv_bias, total, total)
    buf = group.session.buf
    buf.put(send, offset=send_at)
    group.begin()
    _exchange(group, lambda rank: send_at + rank * part,
              lambda rank: (recv_at + rank * part, part), _conn(conn), chunk_bytes, timeout,
              one_by_one=algo == "ring" or algo == "auto" and group.world > 8)
    if do_self_copy:
        mine = group.rank * part
        buf.buffer_copy_within(dst_offset=recv_at + mine, src_offset=send_at + mine, nbytes=part)
    buf.get_into(recv, offset=recv_at)


def allgather(group, send, recv, *, conn="auto", send_bias=0, recv_bias=None, chunk_bytes=_CHUNK,
              timeout=None):
    """Every rank's `send`, in the order of ranks, in every rank's `recv`."""
    part = arrays.span_of(send).nbytes
    room = arrays.destination(recv).nbytes
    if room != part * group.world:
        raise ValueError("send has %d bytes, so recv must have %d, not %d"
                         % (part, part * group.world, room))
    send_at, recv_at = _areas(group, send_bias, recv_bias, part, room)
    buf = group.session.buf
    buf.put(send, offset=send_at)
    group.begin()
    _exchange(group, lambda rank: send_at, lambda rank: (recv_at + rank * part, part), _conn(conn),
              chunk_bytes, timeout)
    buf.buffer_copy_within(dst_offset=recv_at + group.rank * part, src_offset=send_at, nbytes=part)
    buf.get_into(recv, offset=recv_at)


def broadcast(group, data, *, root=0, conn="auto", bias=0, chunk_bytes=_CHUNK, timeout=None):
    """The root's `data` in every rank's."""
    if not 0 <= root < group.world:
        raise ValueError("root is %d: the group has ranks 0 to %d" % (root, group.world - 1))
    span = arrays.span_of(data) if group.rank == root else arrays.destination(data)
    _check_buffer(group, bias + span.nbytes)
    place = (group.rank - root) % group.world  # in a binomial tree with the root at 0
    group.begin()
    distance = 1
    while distance < group.world and not place & distance:
        distance *= 2
    if place:
        parent = (place - distance + root) % group.world
        remote = group.hear(parent, _READY, timeout)
        group.session.wait(group.fetch(parent, remote, bias, span.nbytes, _conn(conn), chunk_bytes))
        group.say(parent, _TAKEN)
    else:
        group.session.buf.put(data, offset=bias)
    children = []
    while distance > 1:
        distance //= 2
        if place + distance < group.world:
            children.append((place + distance + root) % group.world)
    for rank in children:
        group.say(rank, _READY, bias)
    if place:
        group.session.buf.get_into(data, offset=bias)
    _release(group, children, timeout)


def reduce_scatter(group, send, recv, *, op="sum", conn="auto", send_bias=0, recv_bias=None,
                   chunk_bytes=_CHUNK, timeout=None):
    """Part i of the sum (or "max", "min", "prod") of all ranks' `send` in rank i's `recv`."""
    total = arrays.span_of(send).nbytes
    part = arrays.destination(recv).nbytes
    if total != part * group.world:
        raise ValueError("recv has %d bytes, so send must have %d, not %d"
                         % (part, part * group.world, total))
    bounds = [part * rank for rank in range(group.world + 1)]
    send_at, recv_at = _areas(group, send_bias, recv_bias, total, total)
    group.session.buf.put(send, offset=send_at)
    group.begin()
    _reduce_part(group, bounds, send, op, send_at, recv_at, _conn(conn), chunk_bytes, timeout)
    group.session.buf.get_into(recv, offset=recv_at + bounds[group.rank])


def allreduce(group, data, *, op="sum", conn="auto", send_bias=0, recv_bias=None,
              chunk_bytes=_CHUNK, timeout=None):
    """The sum (or "max", "min", "prod") of all ranks' `data`, in place, the same to the bit."""
    span = arrays.destination(data)
    items = span.nbytes // span.itemsize
    each = -(-items // group.world)
    bounds = [min(each * rank, items) * span.itemsize for rank in range(group.world + 1)]
    # Room for a part of every rank besides.
    send_at, recv_at = _areas(group, send_bias, recv_bias, span.nbytes,
                              max(span.nbytes, each * span.itemsize * group.world))
    buf = group.session.buf
    buf.put(data, offset=send_at)
    conn = _conn(conn)
    group.begin()
    _reduce_part(group, bounds, data, op, send_at, recv_at, conn, chunk_bytes, timeout)
    group.begin()
    _exchange(group, lambda rank: recv_at + bounds[group.rank],
              lambda rank: (recv_at + bounds[rank], bounds[rank + 1] - bounds[rank]), conn,
              chunk_bytes, timeout)
    buf.get_into(data, offset=recv_at)


def _reduce_part(group, bounds, data, op, send_at, recv_at, conn, chunk, timeout):
    """Leaves our part of the result in the buffer at recv_at + bounds[rank]."""
    size = bounds[group.rank + 1] - bounds[group.rank]
    # A slot for each rank's part, one after the other.
    _exchange(group, lambda rank: send_at + bounds[rank],
              lambda rank: (recv_at + rank * size, size), conn, chunk, timeout)
    if size == 0:
        return
    buf = group.session.buf
    combine, empty = _arithmetic(data, op)
    total, other = empty(size), empty(size)
    # In the order of ranks, so that every run gives the same bits.
    for rank in range(group.world):
        mine = rank == group.rank
        place = send_at + bounds[rank] if mine else recv_at + rank * size
        buf.get_into(other if rank else total, offset=place)
        if rank:
            combine(total, other)
    buf.put(total, offset=recv_at + bounds[group.rank])


def _arithmetic(data, op):
    """(combine(total, other) in place, empty(nbytes)) in the library that the data is of."""
    library = sys.modules.get("torch" if arrays.is_tensor(data) else "numpy")
    if library is None or not hasattr(data, "dtype"):
        raise TypeError("a %s has no numbers to reduce: pass a numpy array or a torch tensor"
                        % type(data).__name__)
    names = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}
    if op not in names:
        raise ValueError("op is %r: it must be one of %s" % (op, ", ".join(sorted(names))))
    function = getattr(library, names[op])

    def combine(total, other):
        function(total, other, out=total)

    def empty(nbytes):
        items = nbytes // arrays.span_of(data).itemsize
        where = {"device": data.device} if arrays.is_tensor(data) else {}
        return library.empty(items, dtype=data.dtype, **where)

    return combine, empty
