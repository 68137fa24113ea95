"""Sessions: a buffer, connections to peers, and transfers between their buffers and ours."""

from __future__ import annotations

import errno
import os
import socket

from . import _core, arrays
from .enums import ConnType, CtrlTransport, MemoryType
from .errors import HMCError, InvalidArgument, PeerLost
from .iobuffer import IOBuffer, memory_type_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Optional, Sequence, Tuple
    # Anything with the buffer protocol, DLPack or __cuda_array_interface__, or a torch tensor.
    _Array = Any
    _Conn = Optional[ConnType]
    _Where = Tuple[int, _Conn, Optional[int]]  # bias, conn, size


def create_session(*, device_id: int = 0, buffer_size: int = 128 * 1024 * 1024,
                   mem_type: MemoryType = MemoryType.CPU, num_chs: int = 1,
                   local_ip: str = "") -> Session:
    """A Session with a new buffer.

    `num_chs` is the number of RDMA queue pairs to each peer, 1 to 16. `local_ip` is our address as
    peers see it: peers with the same address count as being on this host.
    """
    buf = IOBuffer.create(device_id, buffer_size, mem_type)
    return Session(buf, num_chs, local_ip=local_ip)


class Session(_core.SessionCore):
    """A buffer, and one-sided transfers between it and the buffers of peers.

    A server calls init_server(), a client connect(); then either side may put and get. There are
    two documented ways to name a peer: by address and data port (put_remote, get_remote, put_nb,
    get_nb), and by address alone (put, get, get_into), which also copies from and to your objects.

    Failures raise hmc.HMCError or one of its subclasses. Several threads may use one Session. It
    ends with close(), at the end of a `with` block, or when it is garbage-collected.
    """

    def __init__(self, buf: IOBuffer, num_chs: int = 1, *, local_ip: str = "",
                 ctrl_uds_dir: str = "/tmp") -> None:
        super().__init__(_core.Communicator(buf.core, num_chs))
        self.buf = buf
        self.local_ip = local_ip
        self.ctrl_uds_dir = ctrl_uds_dir
        self.id: Optional[int] = None
        self._serving = False

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def set_local_ip(self, ip: str) -> None:
        """Our address as peers see it."""
        self.local_ip = ip

    def set_ctrl_uds_dir(self, d: str) -> None:
        """The folder, or the path itself, of the control channel's unix socket."""
        self.ctrl_uds_dir = d

    def init_server(self, ip: Optional[str] = None, port: Optional[int] = None, conn: _Conn = None,
                    *, bind_ip: Optional[str] = None, ucx_port: Optional[int] = None,
                    rdma_port: Optional[int] = None, ctrl_tcp_port: Optional[int] = None,
                    self_id: Optional[int] = None, ctrl_uds_dir: Optional[str] = None) -> None:
        """Listen for peers, which may then connect, read and write.

        init_server(bind_ip=..., ucx_port=..., rdma_port=..., ctrl_tcp_port=..., self_id=...) opens
        a listener for each port given, and a unix socket for the tags of peers on this host, unless
        ctrl_uds_dir is "".

        init_server(ip, port, conn) opens one listener; call it again for another one.
        """
        where = bind_ip if bind_ip is not None else ip
        if where is None:
            raise TypeError("init_server needs an address: bind_ip= and ports, or (ip, port, conn)")
        if port is not None:
            self._listen(where, port, 0, "", ConnType.RDMA if conn is None else conn)
            return
        was_serving = self._serving
        uds_path = ""
        if self_id is not None:
            uds_path = _uds_path(self._folder(ctrl_uds_dir), self_id)
        ports = [(rdma_port, ConnType.RDMA), (ucx_port, ConnType.UCX)]
        listeners = [(number, kind) for number, kind in ports if number]
        if not listeners and not ctrl_tcp_port:
            raise ValueError("init_server was given no port: name ucx_port, rdma_port or both")
        for number, kind in listeners or [(0, ConnType.RDMA)]:
            try:
                self._listen(where, number, ctrl_tcp_port or 0, uds_path, kind)
            except HMCError:
                if not was_serving:
                    self.close_server()  # all of them or none
                raise
            ctrl_tcp_port, uds_path = 0, ""
        self.id = self_id
        if ctrl_uds_dir:
            self.ctrl_uds_dir = ctrl_uds_dir
        if not self.local_ip and where not in ("0.0.0.0", "::"):
            self.local_ip = where

    def _listen(self, ip: str, data_port: int, ctrl_port: int, uds_path: str,
                conn: ConnType) -> None:
        _core.check(self.comm.initServer(ip, _port(data_port), _port(ctrl_port), uds_path, conn))
        self._serving = True

    def close_server(self) -> None:
        """Close every listener and the connections that they accepted."""
        _core.check(self.comm.closeServer())
        self._serving = False

    def connect(self, ip: Optional[str] = None, port: Optional[int] = None, conn: _Conn = None, *,
                peer_id: Optional[int] = None, self_id: Optional[int] = None,
                peer_ip: Optional[str] = None, data_port: Optional[int] = None,
                ctrl_tcp_port: Optional[int] = None, uds_dir: Optional[str] = None,
                timeout: Optional[float] = None) -> None:
        """Connect to a server, and wait for one that has not started yet.

        connect(peer_id=0, self_id=1, peer_ip=..., data_port=..., ctrl_tcp_port=..., conn=...) also
        lets the two exchange tags by these ranks. On one host the tags go through a unix socket in
        `uds_dir`, if the server has one; CTRL_TRANSPORT=tcp or uds forces a choice.

        connect(ip, port, conn) connects without ranks.

        `conn` is ConnType.RDMA unless given. `timeout` is in seconds; 10 unless
        HMC_CONNECT_TIMEOUT_MS says otherwise. Connecting twice is no error.
        """
        ip = peer_ip if ip is None else ip
        port = data_port if port is None else port
        if ip is None or port is None:
            raise TypeError("connect needs an address and a port: (ip, port, conn), or peer_id=, "
                            "self_id=, peer_ip=, data_port=, ctrl_tcp_port=")
        conn = ConnType.RDMA if conn is None else conn
        if peer_id is None and self_id is None:
            self._connect(ip, port, conn, timeout)
            return
        if peer_id is None or self_id is None:
            raise TypeError("connect needs both ranks, peer_id= and self_id=, or neither")
        link = self._control_link(peer_id, ip, ctrl_tcp_port, uds_dir)
        self._connect(ip, port, conn, timeout, link, peer_id, self_id)
        self.id = self_id

    def _control_link(self, peer_id: int, ip: str, ctrl_tcp_port: Optional[int],
                      uds_dir: Optional[str]) -> _core.CtrlLink:
        path = _uds_path(self._folder(uds_dir), peer_id)
        wanted = os.environ.get("CTRL_TRANSPORT", "").lower()
        if wanted not in ("", "tcp", "uds"):
            raise InvalidArgument("CTRL_TRANSPORT is %r: it must be tcp or uds" % wanted)
        near = ip == self.local_ip and ip != "0.0.0.0" and _listens(path)
        if wanted == "uds" or not wanted and near:
            return _core.CtrlLink(transport=CtrlTransport.UDS, uds_path=path)
        return _core.CtrlLink(transport=CtrlTransport.TCP, ip=ip, port=_port(ctrl_tcp_port or 0))

    def _folder(self, given: Optional[str]) -> str:
        return self.ctrl_uds_dir if given is None else given

    def disconnect(self, ip: str, port: Optional[int] = None, conn: _Conn = None) -> None:
        """Close a connection: disconnect(ip, port, conn), or disconnect(ip, conn)."""
        if isinstance(port, ConnType):
            port, conn = None, port
        self._disconnect(ip, port, ConnType.RDMA if conn is None else conn)

    def check_conn(self, ip: str, port: Optional[int] = None, conn: _Conn = None) -> bool:
        """Whether the connection is up: check_conn(ip, port, conn), or check_conn(ip, conn)."""
        if isinstance(port, ConnType):
            port, conn = None, port
        conn = self._type_for(ip, port, conn, ConnType.RDMA)
        status = (self.comm.checkConn(ip, conn) if port is None
                  else self.comm.checkConn(ip, _port(port), conn))
        try:
            _core.check(status)
        except (PeerLost, LookupError):
            return False
        return True

    def explain(self, ip: str, port: int) -> str:
        """One line for each transport: whether it serves the peer, and why or why not."""
        return self.comm.explain(ip, _port(port))

    def buffer_put_then_put(self, ip: str, port: int, data: _Array, *, local_off: int = 0,
                            remote_off: int = 0, conn: _Conn = None, nbytes: Optional[int] = None,
                            device: Optional[str] = None) -> int:
        """buf.put() and put_remote() in one call; returns the number of bytes."""
        size = self.buf.put(data, nbytes=nbytes, offset=local_off, device=device)
        self.put_remote(ip, port, local_off, remote_off, size, conn)
        return size

    def get_then_buffer_get_into(self, ip: str, port: int, dst: _Array, *, local_off: int = 0,
                                 remote_off: int = 0, nbytes: Optional[int] = None,
                                 conn: _Conn = None, device: Optional[str] = None) -> int:
        """get_remote() and buf.get_into() in one call; returns the number of bytes."""
        size = _room(dst, nbytes)
        self.get_remote(ip, port, local_off, remote_off, size, conn)
        return self.buf.get_into(dst, nbytes=size, offset=local_off, device=device)

    def put(self, ip: str, data: _Array, *args: Any, bias: Optional[int] = None, conn: _Conn = None,
            size: Optional[int] = None, device: Optional[str] = None) -> int:
        """Copy `data` into our buffer at `bias`, and from there to the peer's at the same offset.

        put(ip, data, bias=0, conn=ConnType.UCX, size=None); bias and conn may come in either order.
        """
        return self._put(ip, data, _sorted_out(args, bias, conn, size), device, ConnType.UCX)

    def _put(self, ip: str, data: _Array, where: _Where, device: Optional[str],
             usual: ConnType) -> int:
        bias, conn, size = where
        size = self.buf.put(data, nbytes=size, offset=bias, device=device)
        self._write_to(ip, bias, size, conn, usual)
        return size

    def get_into(self, ip: str, dest: _Array, *args: Any, bias: Optional[int] = None,
                 conn: _Conn = None, size: Optional[int] = None,
                 device: Optional[str] = None) -> int:
        """Copy the peer's buffer at `bias` into ours, and from there into `dest`.

        get_into(ip, dest, bias=0, conn=ConnType.UCX, size=None); without size, as much as fits. On
        a server it waits for the peer to connect.
        """
        return self._get_into(ip, dest, _sorted_out(args, bias, conn, size), device, ConnType.UCX)

    def _get_into(self, ip: str, dest: _Array, where: _Where, device: Optional[str],
                  usual: ConnType) -> int:
        bias, conn, size = where
        size = _room(dest, size)
        self._read_from(ip, bias, size, conn, usual)
        return self.buf.get_into(dest, nbytes=size, offset=bias, device=device)

    def get(self, ip: Any, size: Any, *args: Any, bias: Optional[int] = None,
            conn: _Conn = None) -> bytes:
        """`size` bytes of the peer's buffer at `bias`: get(ip, size) or get(size, ip)."""
        if isinstance(size, str):
            ip, size = size, ip
        bias, conn, _ = _sorted_out(args, bias, conn, None)
        self._read_from(ip, bias, size, conn, ConnType.UCX)
        return bytes(self.buf.buffer_get_cpu(nbytes=size, offset=bias))

    def put_torch_cuda(self, ip: str, t: _Array, *args: Any, bias: Optional[int] = None,
                       conn: _Conn = None, size: Optional[int] = None) -> int:
        """put() of a tensor on an accelerator, over ConnType.RDMA unless told otherwise."""
        return self._put(ip, t, _sorted_out(args, bias, conn, size), "cuda", ConnType.RDMA)

    def get_torch_cuda(self, ip: str, t: _Array, *args: Any, bias: Optional[int] = None,
                       conn: _Conn = None, size: Optional[int] = None) -> int:
        """get_into() for a tensor on an accelerator, over ConnType.RDMA unless told otherwise."""
        return self._get_into(ip, t, _sorted_out(args, bias, conn, size), "cuda", ConnType.RDMA)

    def write_to(self, ip: str, ptr_bias: int, size: int, conn: _Conn = None) -> None:
        """Copy our buffer at `ptr_bias` to the peer's at the same offset."""
        self._write_to(ip, ptr_bias, size, conn, ConnType.RDMA)

    def read_from(self, ip: str, ptr_bias: int, size: int, conn: _Conn = None) -> None:
        """Copy the peer's buffer at `ptr_bias` to ours at the same offset."""
        self._read_from(ip, ptr_bias, size, conn, ConnType.RDMA)

    def send_data_to(self, ip: str, port: Optional[int], send_buf_ptr: _Array,
                     buf_size: Optional[int] = None, buf_type: Optional[MemoryType] = None,
                     conn: _Conn = None) -> None:
        """Send memory of any size to a peer that calls recv_data_from().

        `send_buf_ptr` is an object, or an address with buf_size and buf_type. The bytes pass
        through the buffers of both sides and overwrite what is there. port=None means the peer that
        connected from that ip.
        """
        place = _place(send_buf_ptr, buf_size, buf_type, arrays.source)
        conn = self._type_for(ip, port, conn, ConnType.RDMA)
        self._send_data(ip, port, *place[:3], conn)

    def recv_data_from(self, ip: str, port: Optional[int], recv_buf_ptr: _Array,
                       buf_size: Optional[int] = None, buf_type: Optional[MemoryType] = None,
                       flag_ptr: Optional[int] = None, conn: _Conn = None) -> int:
        """Receive what a peer sends with send_data_to(); return the number of bytes.

        `flag_ptr`, if given, is the address of a size_t that also gets the number.
        """
        place = _place(recv_buf_ptr, buf_size, buf_type, arrays.destination)
        conn = self._type_for(ip, port, conn, ConnType.RDMA)
        count = self._receive_data(ip, port, *place[:3], conn)
        if flag_ptr:
            import ctypes  # few callers pass addresses
            ctypes.c_size_t.from_address(flag_ptr).value = count
        return count


def _port(port: int) -> int:
    """Raises an error that names the argument, which the core cannot."""
    return _core.port_argument(port)


def _uds_path(path: str, rank: int) -> str:
    """`path` is a folder for the socket, or the socket itself."""
    return _core.Communicator.udsPathFor(path, rank) if os.path.isdir(path) else path


def _listens(path: str) -> bool:
    """Whether a server listens at this unix socket. One that crashed leaves its file behind."""
    if not os.path.exists(path):
        return False
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        return probe.connect_ex(path) in (0, errno.EAGAIN)  # EAGAIN: its backlog is full


def _room(dst: _Array, nbytes: Optional[int]) -> int:
    """How many bytes to get; checked before the peer is asked for them."""
    room = arrays.destination(dst).nbytes
    if nbytes is None:
        return room
    if not 0 <= nbytes <= room:
        raise ValueError("size is %d, but the destination has room for %d bytes" % (nbytes, room))
    return nbytes


def _sorted_out(args: Sequence[Any], bias: Optional[int], conn: _Conn,
                size: Optional[int]) -> _Where:
    """The documented orders (conn, bias, size) and (bias, conn, size), told apart by type."""
    numbers = []
    for value in args:
        if not isinstance(value, ConnType):
            numbers.append(value)
        elif conn is None:
            conn = value
        else:
            raise TypeError("conn was given twice: %s and %s" % (conn, value))
    if numbers and bias is None:
        bias = numbers.pop(0)
    if numbers and size is None:
        size = numbers.pop(0)
    if numbers:
        raise TypeError("%r is one argument too many: bias, conn and size are all there are"
                        % (numbers[0],))
    return (0 if bias is None else bias), conn, size


def _place(obj: _Array, size: Optional[int], kind: Optional[MemoryType],
           described: Callable[[Any], arrays.Span]) -> Tuple[int, int, MemoryType, Any]:
    """(address, size, MemoryType, owner of the memory)."""
    if isinstance(obj, int):
        if size is None or kind is None:
            raise ValueError("an address needs buf_size and buf_type, too")
        return obj, size, MemoryType(kind), None
    span = described(obj)
    size = span.nbytes if size is None else size
    if not 0 <= size <= span.nbytes:
        raise ValueError("buf_size is %d, but the object has %d bytes" % (size, span.nbytes))
    arrays.settle(span, obj)
    return span.pointer, size, memory_type_of(span), span
