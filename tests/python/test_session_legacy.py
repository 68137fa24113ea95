"""The first documented generation: peers by their address alone."""

import threading

import pytest

import hmc
from peers import HERE, PATIENCE, Child, free_port

UCX, RDMA, TCP = hmc.ConnType.UCX, hmc.ConnType.RDMA, hmc.ConnType.TCP


@pytest.fixture(params=[TCP, UCX, RDMA], ids=lambda conn: conn.name)
def both(request):
    port = free_port()
    with hmc.create_session(buffer_size=1 << 20) as server, \
            hmc.create_session(buffer_size=1 << 20) as client:
        server.init_server(HERE, port, conn=request.param)
        client.connect(HERE, port, conn=request.param)
        yield server, client, request.param


def test_puts_objects_and_gets_them_back(both):
    server, client, conn = both
    assert client.put(HERE, b"hello hmc", conn=conn) == 9
    assert server.buf.buffer_get_cpu(nbytes=9) == b"hello hmc"
    assert client.get(HERE, 9, conn=conn) == b"hello hmc"
    into = bytearray(5)
    assert client.get_into(HERE, into, conn=conn) == 5
    assert into == b"hello"
    assert client.get_into(HERE, into, size=2, bias=6, conn=conn) == 2
    assert into == b"hmllo"
    client.buf.put(b"raw", offset=64)
    client.write_to(HERE, 64, 3, conn)
    server.buf.put(b"RAW", offset=128)
    client.read_from(HERE, 128, 3, conn)
    assert client.buf.buffer_get_cpu(nbytes=3, offset=128) == b"RAW"
    assert server.buf.buffer_get_cpu(nbytes=3, offset=64) == b"raw"


def test_takes_the_documented_orders_of_arguments(both):
    server, client, conn = both
    client.put(HERE, b"abcdef", conn, 100, 3)
    client.put(HERE, b"ghijkl", 103, conn, 3)
    client.put(HERE, b"mn", bias=106, conn=conn)
    assert server.buf.buffer_get_cpu(nbytes=9, offset=100) == b"abcghimn\0"
    assert client.get(HERE, 3, conn, 100) == client.get(3, HERE, 100, conn) == b"abc"
    assert client.get(3, HERE, bias=103, conn=conn) == b"ghi"
    into = bytearray(2)
    client.get_into(HERE, into, conn, 106)
    client.get_into(HERE, into, 106, conn, 2)
    assert into == b"mn"


def test_takes_the_connection_that_there_is(both):
    server, client, _ = both
    client.put(HERE, b"whatever it is")
    assert client.get(HERE, 14) == b"whatever it is"
    assert client.check_conn(HERE)


def test_moves_arrays_and_tensors(both):
    np = pytest.importorskip("numpy")
    server, client, conn = both
    x = np.arange(1024, dtype=np.int32)
    client.put(HERE, x, conn=conn)
    y = np.empty((1024,), dtype=np.int32)
    client.get_into(HERE, y, conn=conn)
    assert (x == y).all()
    torch = pytest.importorskip("torch")
    t = torch.arange(4096, dtype=torch.bfloat16)
    client.put(HERE, t, conn=conn)
    out = torch.empty_like(t)
    client.get_into(HERE, out, conn=conn)
    assert torch.equal(t, out)


def test_forgets_a_peer(both):
    server, client, conn = both
    assert client.check_conn(HERE, conn)
    client.disconnect(HERE, conn)
    assert not client.check_conn(HERE, conn)
    with pytest.raises(hmc.NotConnected):
        client.put(HERE, b"x", conn=conn)
    server.close_server()


def test_a_server_waits_for_the_peer_that_it_names():
    port = free_port()
    with hmc.create_session(buffer_size=4096) as server, \
            hmc.create_session(buffer_size=4096) as client:
        server.init_server(HERE, port, TCP)
        into = bytearray(6)
        reader = threading.Thread(target=server.get_into, args=(HERE, into, TCP))
        reader.start()
        client.buf.put(b"client")
        client.connect(HERE, port, TCP)
        reader.join(PATIENCE)
        assert into == b"client"


CLIENT = """
import hmc, sys
sess = hmc.create_session(buffer_size=1 << 24)
sess.buf.put(b"from a client that is gone")
sess.connect("127.0.0.1", int(sys.argv[1]), hmc.ConnType.TCP)
"""


def test_a_client_that_ends_lets_its_server_finish_reading():
    port = free_port()
    with hmc.create_session(buffer_size=1 << 24) as server:
        server.init_server(HERE, port, TCP)
        into = bytearray(1 << 24)
        reader = threading.Thread(target=server.get_into, args=(HERE, into, TCP))
        reader.start()
        while reader.is_alive():  # until one was there when the server read
            with Child(CLIENT, port) as client:
                assert client.finish()[0] == 0
        assert into.startswith(b"from a client that is gone")


def test_an_address_with_several_peers_needs_a_port():
    port = free_port()
    with hmc.create_session(buffer_size=4096) as server, \
            hmc.create_session(buffer_size=4096) as one, \
            hmc.create_session(buffer_size=4096) as two:
        server.init_server(HERE, port, TCP)
        one.connect(HERE, port, TCP)
        two.connect(HERE, port, TCP)
        with pytest.raises(hmc.NotFound, match="2 peers are connected from 127.0.0.1"):
            server.get(HERE, 8, conn=TCP)


def test_a_server_may_listen_for_several_types():
    with hmc.create_session(buffer_size=4096) as server, \
            hmc.create_session(buffer_size=4096) as client:
        for conn in (TCP, UCX, hmc.ConnType.IPC):
            port = free_port()
            server.init_server(HERE, port, conn)
            client.connect(HERE, port, conn)
            client.put_remote(HERE, port, 0, 0, 8, conn)
            assert client.check_conn(HERE, port, conn)
