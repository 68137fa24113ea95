"""The second documented generation: peers by address and port, tags by rank."""

import contextlib
import os
import socket
import threading

import pytest

import hmc
from hmc import session
from peers import HERE, Pair, free_port

CONNS = [hmc.ConnType.AUTO, hmc.ConnType.TCP, hmc.ConnType.UCX, hmc.ConnType.RDMA]


@pytest.fixture(params=CONNS, ids=lambda conn: conn.name)
def pair(request):
    with Pair(request.param) as both:
        yield both


def test_puts_and_gets_what_was_staged(pair):
    n = pair.client.buf.put(b"hello hmc", offset=10)
    pair.client.put_remote(HERE, pair.port, local_off=10, remote_off=100, nbytes=n, conn=pair.conn)
    assert pair.server.buf.buffer_get_cpu(nbytes=9, offset=100) == b"hello hmc"
    pair.server.buf.put(b"HELLO", offset=100)
    pair.client.get_remote(HERE, pair.port, local_off=500, remote_off=100, nbytes=9, conn=pair.conn)
    assert pair.client.buf.buffer_get_cpu(nbytes=9, offset=500) == b"HELLO hmc"


def test_starts_transfers_and_waits_for_one_or_many(pair):
    data = os.urandom(256 << 10)
    pair.client.buf.put(data)
    half = len(data) // 2
    first = pair.client.put_nb(HERE, pair.port, 0, 0, half, conn=pair.conn)
    second = pair.client.put_nb(HERE, pair.port, half, half, half, conn=pair.conn)
    pair.client.wait([second, first])
    assert pair.server.buf.buffer_get_cpu(nbytes=len(data)) == data
    back = pair.client.get_nb(HERE, pair.port, local_off=600 << 10, remote_off=0, nbytes=half,
                              conn=pair.conn)
    pair.client.wait(back)
    pair.client.wait(wr_id=0)
    assert pair.client.buf.buffer_get_cpu(nbytes=half, offset=600 << 10) == data[:half]
    with pytest.raises(hmc.NotFound, match="no transfer 987654") as raised:
        pair.client.wait([0, 987654])
    assert raised.value.status == hmc.Status.NOT_FOUND
    assert not isinstance(raised.value, hmc.NotConnected)


def test_moves_in_chunks(pair):
    data = os.urandom(300001)
    pair.client.buf.put(data)
    pair.client.put_pipeline(HERE, pair.port, 0, 7, len(data), chunk_size=65536, max_inflight=4,
                             conn=pair.conn)
    assert pair.server.buf.buffer_get_cpu(nbytes=len(data), offset=7) == data
    pair.client.get_pipeline(HERE, pair.port, 400000, 7, len(data), conn=pair.conn)
    assert pair.client.buf.buffer_get_cpu(nbytes=len(data), offset=400000) == data


def test_stages_and_moves_in_one_call(pair):
    assert pair.client.buffer_put_then_put(HERE, pair.port, b"one call", local_off=3, remote_off=40,
                                           conn=pair.conn) == 8
    back = bytearray(8)
    assert pair.client.get_then_buffer_get_into(HERE, pair.port, back, local_off=50, remote_off=40,
                                                conn=pair.conn) == 8
    assert back == b"one call"


def test_the_server_reaches_a_client_that_listens_on_nothing(pair):
    pair.client.buf.put(b"client's own")
    pair.server.get_remote(HERE, 0, local_off=0, remote_off=0, nbytes=12, conn=pair.conn)
    assert pair.server.buf.buffer_get_cpu(nbytes=12) == b"client's own"
    pair.server.buf.put(b"server's")
    pair.server.put_remote(HERE, 0, 0, 0, 8, conn=pair.conn)
    assert pair.client.buf.buffer_get_cpu(nbytes=8) == b"server's"


def test_sends_and_receives_more_than_the_buffer_holds(pair):
    data = os.urandom(3 << 20)
    into = bytearray(4 << 20)
    counts = []
    receiver = threading.Thread(
        target=lambda: counts.append(pair.server.recv_data_from(HERE, 0, into, conn=pair.conn)))
    receiver.start()
    pair.client.send_data_to(HERE, pair.port, data, conn=pair.conn)
    receiver.join()
    assert counts == [len(data)] and into[:len(data)] == data


def test_tags_arrive_after_the_data_and_in_order(pair):
    for turn in range(200):
        pair.client.buf.put(turn.to_bytes(8, "little"))
        pair.client.put_remote(HERE, pair.port, 0, 0, 8, conn=pair.conn)
        pair.client.ctrl_send(peer=0, tag=turn)
        assert pair.server.ctrl_recv(peer=1) == turn
        assert int.from_bytes(pair.server.buf.buffer_get_cpu(nbytes=8), "little") == turn
        pair.server.ctrl_send(1, 2**64 - 1)
        assert pair.client.ctrl_recv(0) == 2**64 - 1


def test_receives_addresses_as_upstream_passed_them():
    ctypes = pytest.importorskip("ctypes")
    with Pair() as pair:
        source = ctypes.create_string_buffer(b"by address", 10)
        target = ctypes.create_string_buffer(64)
        count = ctypes.c_size_t()
        cpu = hmc.MemoryType.CPU
        receiver = threading.Thread(target=pair.server.recv_data_from, args=(
            HERE, 0, ctypes.addressof(target), 64, cpu, ctypes.addressof(count), pair.conn))
        receiver.start()
        pair.client.send_data_to(HERE, pair.port, ctypes.addressof(source), 10, cpu, pair.conn)
        receiver.join()
        assert (count.value, target.value) == (10, b"by address")


def test_uses_the_connection_that_there_is_when_none_is_named():
    with Pair(hmc.ConnType.TCP) as pair:
        pair.client.buf.put(b"unnamed")
        pair.client.put_remote(HERE, pair.port, 0, 0, 7)
        assert pair.server.buf.buffer_get_cpu(nbytes=7) == b"unnamed"
        assert pair.client.check_conn(HERE, pair.port)
        assert pair.client.check_conn(HERE, pair.port, hmc.ConnType.TCP)


def test_takes_any_integer_for_numbers():
    np = pytest.importorskip("numpy")
    with Pair() as pair:
        pair.client.buf.put(b"integers")
        pair.client.put_remote(HERE, np.uint16(pair.port), np.int64(0), np.uint32(5), np.int8(8),
                               conn=pair.conn)
        assert pair.server.buf.buffer_get_cpu(nbytes=8, offset=5) == b"integers"


def test_forgets_connections():
    with Pair() as pair:
        assert pair.client.check_conn(HERE, pair.port, pair.conn)
        pair.client.disconnect(HERE, pair.port, pair.conn)
        assert not pair.client.check_conn(HERE, pair.port, pair.conn)
        with pytest.raises(hmc.NotConnected, match="not connected to 127.0.0.1:%d" % pair.port):
            pair.client.put_remote(HERE, pair.port, 0, 0, 8, conn=pair.conn)


@pytest.mark.parametrize("transport", ["tcp", "uds", ""])
def test_the_environment_chooses_what_carries_tags(monkeypatch, transport):
    monkeypatch.setenv("CTRL_TRANSPORT", transport)
    with Pair() as pair:
        pair.client.ctrl_send(0, 5)
        assert pair.server.ctrl_recv(1) == 5
        from_port = pair.server.explain(HERE, 0)
        assert "ipc: used" in from_port


def test_the_path_of_the_unix_socket_may_be_its_folder_or_itself(tmp_path, monkeypatch):
    monkeypatch.setenv("CTRL_TRANSPORT", "uds")
    port = free_port()
    path = str(tmp_path / "control.sock")
    with hmc.create_session(buffer_size=4096) as server, \
            hmc.create_session(buffer_size=4096) as client:
        server.init_server(bind_ip=HERE, ucx_port=port, rdma_port=0, ctrl_tcp_port=0, self_id=7,
                           ctrl_uds_dir=path)
        client.set_ctrl_uds_dir(path)
        client.connect(peer_id=7, self_id=8, peer_ip=HERE, data_port=port, conn=hmc.ConnType.AUTO)
        client.ctrl_send(7, 1)
        assert server.ctrl_recv(8) == 1


def test_a_unix_socket_that_a_crash_left_behind_does_not_keep_peers_apart(tmp_path):
    with socket.socket(socket.AF_UNIX) as crashed:
        crashed.bind(hmc.Communicator.udsPathFor(str(tmp_path), 0))
    with Pair() as pair, hmc.create_session(buffer_size=4096, local_ip=HERE) as client:
        client.connect(peer_id=0, self_id=2, peer_ip=HERE, data_port=pair.port,
                       ctrl_tcp_port=pair.ctrl_port, uds_dir=str(tmp_path), conn=pair.conn)
        client.ctrl_send(0, 9)
        assert pair.server.ctrl_recv(2) == 9


def test_a_busy_unix_socket_is_somebodys_and_costs_no_wait(tmp_path):
    path = str(tmp_path / "busy.sock")
    with contextlib.ExitStack() as open_ones, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(0)
        code = 0
        while code == 0:  # until its queue is full
            caller = open_ones.enter_context(socket.socket(socket.AF_UNIX))
            caller.setblocking(False)
            code = caller.connect_ex(path)
        assert session._listens(path)
    assert not session._listens(path)


def test_a_session_ends_with_its_block():
    with Pair() as pair:
        with pair.client:
            pass
        for call in (lambda: pair.client.put_remote(HERE, pair.port, 0, 0, 8, conn=pair.conn),
                     lambda: pair.client.ctrl_recv(0)):
            with pytest.raises(hmc.HMCError):
                call()


def test_shows_its_documentation():
    text = hmc.Session.put_remote.__doc__ + hmc.Session.connect.__doc__ + hmc.Session.__doc__
    assert "put_remote(ip, port, local_off, remote_off, nbytes, conn=None)" in text
    assert "object at 0x" not in text
