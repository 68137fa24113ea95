"""Sessions: a buffer, the connections of its peers, and what moves between them."""

import errno
import os
import socket

from . import _core, arrays
from .enums import ConnType, CtrlTransport, MemoryType
from .errors import HMCError, InvalidArgument, PeerLost
from .iobuffer import IOBuffer, memory_type_of


def create_session(*, device_id=0, buffer_size=128 * 1024 * 1024, mem_type=MemoryType.CPU,
                   num_chs=1, local_ip=""):
    """A Session with a new buffer.

    `num_chs` is the number of RDMA queue pairs to each peer, 1 to 16. `local_ip` is our address as
    peers see it: a peer of the same address is taken to be on this host.
    """
    buf = IOBuffer.create(device_id, buffer_size, mem_type)
    return Session(buf, num_chs, local_ip=local_ip)


class Session(_core.SessionCore):
    """A buffer and one-sided transfers between it and those of peers.

    A server calls init_server(), a client connect(); from then on either side may put and get.
    There are two documented ways to name a peer, and both work: by address and data port
    (put_remote, get_remote, put_nb, get_nb), and by address alone, which also copies to and from
    your objects (put, get, get_into).

    What fails is raised: see hmc.HMCError and its subclasses. A Session may be used from several
    threads. It ends with close(), at the end of a `with` block, or when it is garbage.
    """

    def __init__(self, buf, num_chs=1, *, local_ip="", ctrl_uds_dir="/tmp"):
        super().__init__(_core.Communicator(buf.core, num_chs))
        self.buf = buf
        self.local_ip = local_ip
        self.ctrl_uds_dir = ctrl_uds_dir
        self.id = None
        self._serving = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def set_local_ip(self, ip):
        """Our address as peers see it."""
        self.local_ip = ip

    def set_ctrl_uds_dir(self, d):
        """The folder, or the very path, of the control channel's unix socket."""
        self.ctrl_uds_dir = d

    def init_server(self, ip=None, port=None, conn=None, *, bind_ip=None, ucx_port=None,
                    rdma_port=None, ctrl_tcp_port=None, self_id=None, ctrl_uds_dir=None):
        """Listens for peers. Connecting, reading and writing is then up to them.

        init_server(bind_ip=..., ucx_port=..., rdma_port=..., ctrl_tcp_port=..., self_id=...) opens
        a listener for each port that is named, and a unix socket for tags of peers on this host.

        init_server(ip, port, conn) opens one listener. It may be called again for another one.
        """
        if bind_ip is None and ip is None:
            raise TypeError("init_server needs an address: bind_ip= and ports, or (ip, port, conn)")
        where = bind_ip if bind_ip is not None else ip
        if port is not None:
            self._listen(where, port, 0, "", ConnType.RDMA if conn is None else conn)
            return
        was_serving = self._serving
        uds_path = ""
        if self_id is not None:
            uds_path = _uds_path(ctrl_uds_dir or self.ctrl_uds_dir, self_id)
        listeners = [(rdma_port, ConnType.RDMA), (ucx_port, ConnType.UCX)]
        listeners = [(number, kind) for number, kind in listeners if number]
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

    def _listen(self, ip, data_port, ctrl_port, uds_path, conn):
        _core.check(self.comm.initServer(ip, _port(data_port), _port(ctrl_port), uds_path, conn))
        self._serving = True

    def close_server(self):
        """Closes every listener and the connections that came in through them."""
        _core.check(self.comm.closeServer())
        self._serving = False

    def connect(self, ip=None, port=None, conn=None, *, peer_id=None, self_id=None, peer_ip=None,
                data_port=None, ctrl_tcp_port=None, uds_dir=None, timeout=None):
        """Connects to a server, which may yet have to come up.

        connect(peer_id=0, self_id=1, peer_ip=..., data_port=..., ctrl_tcp_port=..., conn=...): from
        then on the two can also exchange tags by these ranks. Peers of one host do that through a
        unix socket in `uds_dir`, if it is there; CTRL_TRANSPORT=tcp or uds forces a choice.

        connect(ip, port, conn): without ranks.

        `conn` is ConnType.RDMA unless given. `timeout` is in seconds; 10 unless
        HMC_CONNECT_TIMEOUT_MS says otherwise. Connected already is fine.
        """
        ip = peer_ip if ip is None else ip
        port = data_port if port is None else port
        if ip is None or port is None:
            raise TypeError("connect needs an address and a port: (ip, port, conn), or peer_id=, "
                            "self_id=, peer_ip=, data_port=, ctrl_tcp_port=")
        conn = ConnType.RDMA if conn is None else conn
        if peer_id is None and self_id is None:
            self._connect_legacy(ip, port, conn, timeout)
            return
        if peer_id is None or self_id is None:
            raise TypeError("connect needs both ranks, peer_id= and self_id=, or neither")
        link = self._control_link(peer_id, ip, ctrl_tcp_port, uds_dir)
        self._connect(peer_id, self_id, ip, port, link, conn, timeout)
        self.id = self_id

    def _control_link(self, peer_id, ip, ctrl_tcp_port, uds_dir):
        path = _uds_path(uds_dir or self.ctrl_uds_dir, peer_id)
        wanted = os.environ.get("CTRL_TRANSPORT", "").lower()
        if wanted not in ("", "tcp", "uds"):
            raise InvalidArgument("CTRL_TRANSPORT is %r: it must be tcp or uds" % wanted)
        near = ip == self.local_ip and ip != "0.0.0.0" and _listens(path)
        if wanted == "uds" or not wanted and near:
            return _core.CtrlLink(transport=CtrlTransport.UDS, uds_path=path)
        return _core.CtrlLink(transport=CtrlTransport.TCP, ip=ip, port=_port(ctrl_tcp_port or 0))

    def disconnect(self, ip, port=None, conn=None):
        """Forgets a connection: disconnect(ip, port, conn), or disconnect(ip, conn)."""
        if isinstance(port, ConnType):
            port, conn = None, port
        self._disconnect(ip, port, ConnType.RDMA if conn is None else conn)

    def check_conn(self, ip, port=None, conn=None):
        """Is that connection there? check_conn(ip, port, conn), or check_conn(ip, conn)."""
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

    def explain(self, ip, port):
        """Which transport serves a peer and why each other one does not: a line each."""
        return self.comm.explain(ip, _port(port))

    def buffer_put_then_put(self, ip, port, data, *, local_off=0, remote_off=0, conn=None,
                            nbytes=None, device=None):
        """buf.put() and put_remote() in one call; returns the number of bytes."""
        size = self.buf.put(data, nbytes=nbytes, offset=local_off, device=device)
        self.put_remote(ip, port, local_off, remote_off, size, conn)
        return size

    def get_then_buffer_get_into(self, ip, port, dst, *, local_off=0, remote_off=0, nbytes=None,
                                 conn=None, device=None):
        """get_remote() and buf.get_into() in one call; returns the number of bytes."""
        size = _room(dst, nbytes)
        self.get_remote(ip, port, local_off, remote_off, size, conn)
        self.buf.get_into(dst, nbytes=size, offset=local_off, device=device)
        return size

    def put(self, ip, data, *args, bias=None, conn=None, size=None, device=None):
        """Copies `data` into our buffer at `bias` and from there to the same place at the peer.

        put(ip, data, bias=0, conn=ConnType.UCX, size=None); bias and conn may come in either order.
        """
        bias, conn, size = _sorted_out(args, bias, conn, size)
        size = self.buf.put(data, nbytes=size, offset=bias, device=device)
        self._write_to(ip, bias, size, conn, ConnType.UCX)
        return size

    def get_into(self, ip, dest, *args, bias=None, conn=None, size=None, device=None):
        """Copies the peer's buffer at `bias` into ours and from there into `dest`.

        get_into(ip, dest, bias=0, conn=ConnType.UCX, size=None); without size, as much as fits. On
        a server it waits for the peer to come.
        """
        bias, conn, size = _sorted_out(args, bias, conn, size)
        size = _room(dest, size)
        self._read_from(ip, bias, size, conn, ConnType.UCX)
        self.buf.get_into(dest, nbytes=size, offset=bias, device=device)
        return size

    def get(self, ip, size, *args, bias=None, conn=None):
        """`size` bytes of the peer's buffer at `bias`: get(ip, size) or get(size, ip)."""
        if isinstance(size, str):
            ip, size = size, ip
        bias, conn, _ = _sorted_out(args, bias, conn, None)
        self._read_from(ip, bias, size, conn, ConnType.UCX)
        return bytes(self.buf.buffer_get_cpu(nbytes=size, offset=bias))

    def put_torch_cuda(self, ip, t, *args, bias=None, conn=None, size=None):
        """put() of a tensor on an accelerator, over ConnType.RDMA unless told otherwise."""
        bias, conn, size = _sorted_out(args, bias, conn, size)
        size = self.buf.put(t, nbytes=size, offset=bias, device="cuda")
        self._write_to(ip, bias, size, conn, ConnType.RDMA)
        return size

    def get_torch_cuda(self, ip, t, *args, bias=None, conn=None, size=None):
        """get_into() for a tensor on an accelerator, over ConnType.RDMA unless told otherwise."""
        bias, conn, size = _sorted_out(args, bias, conn, size)
        size = _room(t, size)
        self._read_from(ip, bias, size, conn, ConnType.RDMA)
        self.buf.get_into(t, nbytes=size, offset=bias, device="cuda")
        return size

    def write_to(self, ip, ptr_bias, size, conn=None):
        """Copies our buffer at `ptr_bias` to the same place at the peer."""
        self._write_to(ip, ptr_bias, size, conn, ConnType.RDMA)

    def read_from(self, ip, ptr_bias, size, conn=None):
        """Copies the peer's buffer at `ptr_bias` to the same place of ours."""
        self._read_from(ip, ptr_bias, size, conn, ConnType.RDMA)

    def send_data_to(self, ip, port, send_buf_ptr, buf_size=None, buf_type=None, conn=None):
        """Sends any memory to a peer that calls recv_data_from(), whatever its size.

        `send_buf_ptr` is an object, or an address with buf_size and buf_type. It passes through the
        buffers of both sides, whose contents it overwrites. Without a port: the peer from that ip.
        """
        place = _place(send_buf_ptr, buf_size, buf_type, arrays.source)
        conn = self._type_for(ip, port, conn, ConnType.RDMA)
        self._send_data(ip, port, *place[:3], conn)

    def recv_data_from(self, ip, port, recv_buf_ptr, buf_size=None, buf_type=None, flag_ptr=None,
                       conn=None):
        """Receives what a peer sends with send_data_to(), and returns how many bytes it was.

        `flag_ptr`, if given, is the address of a size_t that the number is written to as well.
        """
        place = _place(recv_buf_ptr, buf_size, buf_type, arrays.destination)
        conn = self._type_for(ip, port, conn, ConnType.RDMA)
        count = self._receive_data(ip, port, *place[:3], conn)
        if flag_ptr:
            import ctypes  # only for those who pass addresses
            ctypes.c_size_t.from_address(flag_ptr).value = count
        return count


def _port(port):
    """Checks what the core would only refuse."""
    return _core.port_argument(port)


def _uds_path(path, rank):
    """Both are accepted: a folder for the socket, and the socket itself."""
    return _core.Communicator.udsPathFor(path, rank) if os.path.isdir(path) else path


def _listens(path):
    """Is there somebody at this unix socket? A server that crashed leaves its file behind."""
    if not os.path.exists(path):
        return False
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        return probe.connect_ex(path) in (0, errno.EAGAIN)  # or too many others want him as well


def _room(dst, nbytes):
    """How many bytes to get, before the peer is asked for them."""
    room = arrays.destination(dst).nbytes
    if nbytes is None:
        return room
    if not 0 <= nbytes <= room:
        raise ValueError("size is %d, but the destination has room for %d bytes" % (nbytes, room))
    return nbytes


def _sorted_out(args, bias, conn, size):
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


def _place(obj, size, kind, described):
    """(address, size, MemoryType, what keeps it alive)."""
    if isinstance(obj, int):
        if size is None or kind is None:
            raise ValueError("an address needs buf_size and buf_type besides")
        return obj, size, MemoryType(kind), None
    span = described(obj)
    size = span.nbytes if size is None else size
    if not 0 <= size <= span.nbytes:
        raise ValueError("buf_size is %d, but the object has %d bytes" % (size, span.nbytes))
    arrays.settle(span, obj)
    return span.pointer, size, memory_type_of(span), span
