"""Collective operations of a group of sessions: every rank calls the same ones in the same order.

Any number of ranks works. Host memory moves in pieces between the arrays themselves
(hmc/collective.h); what lies on an accelerator passes through the session's buffer, whose contents
from `send_bias` on are overwritten. Where the session's buffer lies on an accelerator, or `conn` or
`algo` is named, or the numbers are of another type, each rank copies its part into that buffer and
tells the others where it is; they fetch what they need and report that they have it. So all ranks
name the same.
"""

from __future__ import annotations

import sys

from . import _core, arrays
from .enums import ConnType
from .group import READY, TAKEN, Group, GroupMember, barrier, init_group
from .host_array import HostArray, apart, receive_timeout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union
    _Array = Any  # numpy's and torch's
    _Conn = Union[str, int]

__all__ = ["Group", "GroupMember", "allgather", "allreduce", "alltoall", "barrier", "broadcast",
           "init_group", "reduce_scatter"]

_CHUNK = 4 * 1024 * 1024
# Our names and those of numpy and torch.
_OPS = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}


def _conn(conn: _Conn) -> ConnType:
    return ConnType.AUTO if conn == "auto" else ConnType(conn)  # type: ignore[arg-type]


def _wait_until_taken(group: Group, ranks: Sequence[int], timeout: Optional[float]) -> None:
    """Afterwards our part may be overwritten."""
    for rank in ranks:
        group.hear(rank, TAKEN, timeout)


def _exchange(group: Group, offer: Callable[[int], int], want: Callable[[int], Tuple[int, int]],
              conn: ConnType, chunk: int, timeout: Optional[float],
              one_by_one: bool = False) -> None:
    """Every rank fetches a part from every other rank.

    offer(rank) is the offset in our buffer of the part for that rank; want(rank) is the (offset,
    size) that its part for us goes to.
    """
    others = group.others()
    ids: Dict[int, int] = {}
    for rank in others:
        if not one_by_one:
            group.say(rank, READY, offer(rank))
    for rank in reversed(others):
        if one_by_one:
            # Our distance to the one we hear from, the other way: each step is a ring.
            group.say((2 * group.rank - rank) % group.world, READY,
                      offer((2 * group.rank - rank) % group.world))
        place, size = want(rank)
        ids[rank] = group.fetch(rank, group.hear(rank, READY, timeout), place, size, conn, chunk)
        if one_by_one:
            group.finish(rank, ids.pop(rank))
    for rank in reversed(others):
        group.finish(rank, ids.get(rank, 0))
        group.say(rank, TAKEN)
    _wait_until_taken(group, others, timeout)


def _check_buffer(group: Group, end: int) -> None:
    if end > group.session.buf.size:
        raise ValueError("this needs %d bytes of the session's buffer, which has %d: create the "
                         "session with a larger buffer_size" % (end, group.session.buf.size))


def _areas(group: Group, send_bias: int, recv_bias: Optional[int], send_bytes: int,
           recv_bytes: int) -> Tuple[int, int]:
    if recv_bias is None:
        recv_bias = send_bias + send_bytes
    _check_buffer(group, max(send_bias + send_bytes, recv_bias + recv_bytes))
    return send_bias, recv_bias


def _in_core(group: Group, conn: _Conn) -> bool:
    """The same at all ranks that call the same operation."""
    return group.core is not None and conn in ("auto", ConnType.AUTO)


def _core_of(group: Group) -> _core.Collective:
    assert group.core is not None
    return group.core


def _after(source: HostArray, recv_bias: Optional[int]) -> int:
    """Where an array on an accelerator is received, in the session's buffer."""
    return source.end if recv_bias is None else recv_bias


def _number_type(data: _Array, op: str) -> str:
    """What C++ calls these numbers, empty if it cannot reduce them."""
    if op not in _OPS:
        raise ValueError("op is %r: it must be one of %s" % (op, ", ".join(sorted(_OPS))))
    name = str(getattr(data, "dtype", "")).rpartition(".")[2]
    return name if name in _core.Collective.TYPES else ""


def alltoall(group: Group, send: _Array, recv: _Array, *, algo: str = "auto", conn: _Conn = "auto",
             send_bias: int = 0, recv_bias: Optional[int] = None, chunk_bytes: int = _CHUNK,
             do_self_copy: bool = True, timeout: Optional[float] = None) -> None:
    """Part i of our `send` becomes part r of rank i's `recv`, where r is our rank.

    Both arrays have the same number of bytes, a multiple of the number of ranks. algo="direct"
    fetches from all ranks at once, "ring" from one after the other; "auto" is direct up to 8 ranks.
    conn="auto" takes the best transport of each pair of ranks.
    """
    if algo not in ("auto", "direct", "ring"):
        raise ValueError("algo is %r: it must be auto, direct or ring" % (algo,))
    total = arrays.span_of(send).nbytes
    room = arrays.destination(recv).nbytes
    if total != room or total % group.world:
        raise ValueError("send has %d bytes and recv %d: both must be the same multiple of the %d "
                         "ranks" % (total, room, group.world))
    part = total // group.world
    if _in_core(group, conn) and algo == "auto":
        _alltoall_in_core(group, send, recv, part, send_bias, recv_bias, do_self_copy, timeout)
        return
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


def _alltoall_in_core(group: Group, send: _Array, recv: _Array, part: int, send_bias: int,
                      recv_bias: Optional[int], do_self_copy: bool,
                      timeout: Optional[float]) -> None:
    source = HostArray.read(group.session, send, send_bias)
    target = HostArray.write(group.session, recv, _after(source, recv_bias))
    source = apart(source, target)
    parts = [(source.pointer + part * rank, part, target.pointer + part * rank, part)
             for rank in range(group.world)]
    if not do_self_copy:
        parts[group.rank] = (0, 0, 0, 0)
        if not target.direct:
            target.load()
    _core_of(group).exchange(parts, receive_timeout(timeout))
    target.store()


def allgather(group: Group, send: _Array, recv: _Array, *, conn: _Conn = "auto", send_bias: int = 0,
              recv_bias: Optional[int] = None, chunk_bytes: int = _CHUNK,
              timeout: Optional[float] = None) -> None:
    """Copy every rank's `send`, in order of rank, into every rank's `recv`."""
    part = arrays.span_of(send).nbytes
    room = arrays.destination(recv).nbytes
    if room != part * group.world:
        raise ValueError("send has %d bytes, so recv must have %d, not %d"
                         % (part, part * group.world, room))
    if _in_core(group, conn):
        source = HostArray.read(group.session, send, send_bias)
        target = HostArray.write(group.session, recv, _after(source, recv_bias))
        source = apart(source, target, part * group.rank)
        _core_of(group).allgather(source.pointer, target.pointer, part, receive_timeout(timeout))
        target.store()
        return
    send_at, recv_at = _areas(group, send_bias, recv_bias, part, room)
    buf = group.session.buf
    buf.put(send, offset=send_at)
    group.begin()
    _exchange(group, lambda rank: send_at, lambda rank: (recv_at + rank * part, part), _conn(conn),
              chunk_bytes, timeout)
    buf.buffer_copy_within(dst_offset=recv_at + group.rank * part, src_offset=send_at, nbytes=part)
    buf.get_into(recv, offset=recv_at)


def broadcast(group: Group, data: _Array, *, root: int = 0, conn: _Conn = "auto", bias: int = 0,
              chunk_bytes: int = _CHUNK, timeout: Optional[float] = None) -> None:
    """Copy the root's `data` into every other rank's."""
    if not 0 <= root < group.world:
        raise ValueError("root is %d: the group has ranks 0 to %d" % (root, group.world - 1))
    if _in_core(group, conn):
        make = HostArray.read if group.rank == root else HostArray.write
        host = make(group.session, data, bias)
        _core_of(group).broadcast(host.pointer, host.nbytes, root, receive_timeout(timeout))
        if group.rank != root:
            host.store()
        return
    span = arrays.span_of(data) if group.rank == root else arrays.destination(data)
    _check_buffer(group, bias + span.nbytes)
    place = (group.rank - root) % group.world  # in a binomial tree with the root at 0
    group.begin()
    distance = 1
    while distance < group.world and not place & distance:
        distance *= 2
    if place:
        parent = (place - distance + root) % group.world
        remote = group.hear(parent, READY, timeout)
        group.finish(parent, group.fetch(parent, remote, bias, span.nbytes, _conn(conn),
                                         chunk_bytes))
        group.say(parent, TAKEN)
    else:
        group.session.buf.put(data, offset=bias)
    children: List[int] = []
    while distance > 1:
        distance //= 2
        if place + distance < group.world:
            children.append((place + distance + root) % group.world)
    for rank in children:
        group.say(rank, READY, bias)
    if place:
        group.session.buf.get_into(data, offset=bias)
    _wait_until_taken(group, children, timeout)


def reduce_scatter(group: Group, send: _Array, recv: _Array, *, op: str = "sum",
                   conn: _Conn = "auto", send_bias: int = 0, recv_bias: Optional[int] = None,
                   chunk_bytes: int = _CHUNK, timeout: Optional[float] = None) -> None:
    """Add up all ranks' `send` (or take "max", "min", "prod"); rank i's `recv` gets part i."""
    total = arrays.span_of(send).nbytes
    part = arrays.destination(recv).nbytes
    if total != part * group.world:
        raise ValueError("recv has %d bytes, so send must have %d, not %d"
                         % (part, part * group.world, total))
    number = _number_type(data=send, op=op)
    if _in_core(group, conn) and number:
        source = HostArray.read(group.session, send, send_bias)
        target = HostArray.write(group.session, recv, _after(source, recv_bias))
        source = apart(source, target, -part * group.rank)
        parts = [source.pointer + part * rank for rank in range(group.world)]
        _core_of(group).reduce_scatter(parts, target.pointer, part // source.itemsize, number, op,
                                       receive_timeout(timeout))
        target.store()
        return
    bounds = [part * rank for rank in range(group.world + 1)]
    send_at, recv_at = _areas(group, send_bias, recv_bias, total, total)
    group.session.buf.put(send, offset=send_at)
    group.begin()
    _reduce_part(group, bounds, send, op, send_at, recv_at, _conn(conn), chunk_bytes, timeout)
    group.session.buf.get_into(recv, offset=recv_at + bounds[group.rank])


def allreduce(group: Group, data: _Array, *, op: str = "sum", conn: _Conn = "auto",
              send_bias: int = 0, recv_bias: Optional[int] = None, chunk_bytes: int = _CHUNK,
              timeout: Optional[float] = None) -> None:
    """Replace every rank's `data` by the sum (or "max", "min", "prod") of all ranks'.

    All ranks get the same bits.
    """
    span = arrays.destination(data)
    items = span.nbytes // span.itemsize
    number = _number_type(data, op)
    if _in_core(group, conn) and number:
        host = HostArray.write(group.session, data, send_bias)
        host.load()
        _core_of(group).allreduce(host.pointer, items, number, op, receive_timeout(timeout))
        host.store()
        return
    each = -(-items // group.world)
    bounds = [min(each * rank, items) * span.itemsize for rank in range(group.world + 1)]
    # The result needs room for a part of every rank, and the last part may be short.
    send_at, recv_at = _areas(group, send_bias, recv_bias, span.nbytes,
                              max(span.nbytes, each * span.itemsize * group.world))
    buf = group.session.buf
    buf.put(data, offset=send_at)
    kind = _conn(conn)
    group.begin()
    _reduce_part(group, bounds, data, op, send_at, recv_at, kind, chunk_bytes, timeout)
    group.begin()
    _exchange(group, lambda rank: recv_at + bounds[group.rank],
              lambda rank: (recv_at + bounds[rank], bounds[rank + 1] - bounds[rank]), kind,
              chunk_bytes, timeout)
    buf.get_into(data, offset=recv_at)


def _reduce_part(group: Group, bounds: Sequence[int], data: _Array, op: str, send_at: int,
                 recv_at: int, conn: ConnType, chunk: int, timeout: Optional[float]) -> None:
    """Leave our part of the result in the buffer at recv_at + bounds[rank]."""
    size = bounds[group.rank + 1] - bounds[group.rank]
    # A slot for each rank's part, one after the other.
    _exchange(group, lambda rank: send_at + bounds[rank],
              lambda rank: (recv_at + rank * size, size), conn, chunk, timeout)
    if size == 0:
        return
    buf = group.session.buf
    combine, empty = _arithmetic(data, op)
    total, other = empty(size), empty(size)
    # In order of rank, so that every run gives the same bits.
    for rank in range(group.world):
        mine = rank == group.rank
        place = send_at + bounds[rank] if mine else recv_at + rank * size
        buf.get_into(other if rank else total, offset=place)
        if rank:
            combine(total, other)
    buf.put(total, offset=recv_at + bounds[group.rank])


def _arithmetic(data: _Array,
                op: str) -> Tuple[Callable[[_Array, _Array], None], Callable[[int], _Array]]:
    """(combine(total, other) in place, empty(nbytes)) of the data's library."""
    library: Any = sys.modules.get("torch" if arrays.is_tensor(data) else "numpy")
    if library is None or not hasattr(data, "dtype"):
        raise TypeError("a %s has no numbers to reduce: pass a numpy array or a torch tensor"
                        % type(data).__name__)
    function = getattr(library, _OPS[op])

    def combine(total: _Array, other: _Array) -> None:
        function(total, other, out=total)

    def empty(nbytes: int) -> _Array:
        items = nbytes // arrays.span_of(data).itemsize
        where = {"device": data.device} if arrays.is_tensor(data) else {}
        return library.empty(items, dtype=data.dtype, **where)

    return combine, empty
