"""What a session refuses, and how it says so."""

import pickle
import threading

import pytest

import hmc
from hmc import errors
from peers import HERE, PATIENCE, Pair, free_port


@pytest.fixture(scope="module")
def pair():
    with Pair() as both:
        yield both


def put(pair, local=0, remote=0, nbytes=8, port=None, ip=HERE, conn=hmc.ConnType.AUTO):
    pair.client.put_remote(ip, pair.port if port is None else port, local, remote, nbytes, conn)


def test_ranges_are_checked_without_wrapping_around(pair):
    size = pair.client.buf.size
    for local, remote, nbytes in [(size, 0, 1), (0, size, 1), (0, 2**64 - 8, 16),
                                  (2**64 - 8, 0, 16), (0, 0, 2**64 - 1), (1, 1, size)]:
        with pytest.raises(hmc.OutOfRange, match="%d bytes" % nbytes) as raised:
            put(pair, local, remote, nbytes)
        assert isinstance(raised.value, ValueError) and raised.value.status == hmc.Status.ERROR


@pytest.mark.parametrize("name", ["put_pipeline", "get_pipeline"])
def test_a_pipeline_checks_the_whole_range_and_its_window_first(pair, name):
    move, size = getattr(pair.client, name), pair.client.buf.size
    with pytest.raises(hmc.OutOfRange, match="%d bytes" % size):
        move(HERE, pair.port, 1, 0, size, chunk_size=4096, conn=hmc.ConnType.AUTO)
    with pytest.raises(ValueError, match="max_inflight is 0"):
        move(HERE, pair.port, 0, 0, size, max_inflight=0, conn=hmc.ConnType.AUTO)
    move(HERE, pair.port, 0, 0, size, chunk_size=size - 1, max_inflight=1, conn=hmc.ConnType.AUTO)


@pytest.mark.parametrize("arguments, kind, sentence", [
    (dict(nbytes=-1), ValueError, "nbytes is -1: it must be 0 to"),
    (dict(nbytes=2**64), ValueError, "nbytes is 18446744073709551616: it must be 0 to"),
    (dict(nbytes=1.5), TypeError, "nbytes must be an integer, not float"),
    (dict(local="x"), TypeError, "local_off must be an integer, not str"),
    (dict(port=65536), ValueError, "port is 65536: it must be 0 to 65535"),
    (dict(port="2025"), TypeError, "port must be an integer, not str"),
    (dict(ip=b"127.0.0.1"), TypeError, "ip must be a str, not bytes"),
    (dict(conn="UCX"), TypeError, "conn must be a hmc.ConnType, not str"),
    (dict(conn=9), hmc.InvalidArgument, "9 is not a ConnType"),
])
def test_bad_arguments_are_named(pair, arguments, kind, sentence):
    with pytest.raises(kind, match=sentence):
        put(pair, **arguments)


def test_peers_that_are_not_there_are_named(pair):
    nobody = "not connected to 10.9.8.7:5.*connected: node-"
    with pytest.raises(hmc.NotConnected, match=nobody) as raised:
        put(pair, ip="10.9.8.7", port=5)
    assert isinstance(raised.value, (hmc.NotFound, ConnectionError))
    assert raised.value.status == hmc.Status.NOT_FOUND
    assert not pair.client.check_conn("10.9.8.7", 5, hmc.ConnType.TCP)


def test_waiting_for_a_tag_ends_with_the_timeout(pair):
    with pytest.raises(hmc.DeadlineExceeded) as raised:
        pair.client.ctrl_recv(0, timeout=0.01)
    assert isinstance(raised.value, TimeoutError) and raised.value.status == hmc.Status.TIMEOUT
    for bad in (-1, "x", float("nan")):
        with pytest.raises((ValueError, TypeError), match="timeout"):
            pair.client.ctrl_recv(0, timeout=bad)


def test_connecting_to_nobody_ends_with_the_timeout():
    with hmc.create_session(buffer_size=4096) as client:
        port = free_port()
        for connect in (lambda: client.connect(HERE, port, hmc.ConnType.TCP, timeout=0.1),
                        lambda: client.connect(peer_id=0, self_id=1, peer_ip=HERE, data_port=port,
                                               ctrl_tcp_port=port, timeout=0.1)):
            with pytest.raises(hmc.HMCError, match=str(port)):
                connect()


def test_calls_that_say_too_little_are_told_what_is_missing():
    with hmc.create_session(buffer_size=4096) as session:
        for call, sentence in [
                (lambda: session.connect(HERE), "needs an address and a port"),
                (lambda: session.connect(HERE, 5, peer_id=1), "both ranks"),
                (lambda: session.init_server(port=5), "needs an address"),
                (lambda: session.init_server(bind_ip=HERE, self_id=0), "no port"),
                (lambda: session.put(HERE, b"x", 1, 2, 3), "one argument too many"),
                (lambda: session.put(HERE, b"x", hmc.ConnType.UCX, conn=hmc.ConnType.TCP), "twice"),
                (lambda: session.send_data_to(HERE, 5, 12345), "buf_size and buf_type")]:
            with pytest.raises((TypeError, ValueError), match=sentence):
                call()


def test_a_port_that_is_taken_is_named(pair):
    with hmc.create_session(buffer_size=4096) as other:
        with pytest.raises(hmc.AlreadyExists, match=str(pair.port)):
            other.init_server(HERE, pair.port, hmc.ConnType.UCX)


def test_a_server_opens_all_of_its_listeners_or_none(pair, tmp_path):
    free = free_port()
    with hmc.create_session(buffer_size=4096) as other:
        with pytest.raises(hmc.AlreadyExists):
            other.init_server(bind_ip=HERE, rdma_port=free, ucx_port=pair.port, ctrl_tcp_port=0,
                              self_id=3, ctrl_uds_dir=str(tmp_path))
        assert not list(tmp_path.iterdir())
        other.init_server(bind_ip=HERE, rdma_port=free, ctrl_tcp_port=0, self_id=3,
                          ctrl_uds_dir=str(tmp_path))


def test_sessions_that_cannot_be_made_say_why():
    for arguments, kind, sentence in [(dict(num_chs=0), hmc.InvalidArgument, "num_chs is 0"),
                                      (dict(num_chs=17), hmc.InvalidArgument, "1 to 16"),
                                      (dict(buffer_size=0), hmc.HMCError, "0"),
                                      (dict(mem_type=hmc.MemoryType.CAMBRICON_MLU),
                                       hmc.Unsupported, "cnrt"),
                                      (dict(mem_type=42), hmc.InvalidArgument, "42")]:
        with pytest.raises(kind, match=sentence):
            hmc.create_session(**dict(dict(buffer_size=4096), **arguments))
    with pytest.raises(TypeError):
        hmc.create_session(0, 4096)  # keywords only


def test_closing_a_session_wakes_who_waits_in_it():
    with Pair() as pair:
        raised = []
        pair.client.ctrl_send(0, 1)
        assert pair.server.ctrl_recv(1) == 1

        def wait_for_a_tag():
            try:
                pair.server.ctrl_recv(1, timeout=PATIENCE)
            except hmc.HMCError as error:
                raised.append(error)

        waiting = threading.Thread(target=wait_for_a_tag)
        waiting.start()
        pair.client.close()
        waiting.join(PATIENCE)
        assert len(raised) == 1 and isinstance(raised[0], hmc.PeerLost)
        assert isinstance(raised[0], ConnectionError)


def test_exceptions_are_of_one_family_and_can_be_pickled():
    assert hmc.HMCStatusError is hmc.HMCError and issubclass(hmc.HMCError, RuntimeError)
    documented = hmc.HMCStatusError(hmc.status_t.TIMEOUT, "no answer")
    assert documented.status == hmc.Status.TIMEOUT
    assert str(documented).startswith("no answer (status=")
    for kind in [hmc.HMCError] + hmc.HMCError.__subclasses__() + [hmc.NotConnected]:
        made = errors.from_core(kind.code, "a sentence")
        assert type(made) is kind and str(made) == "a sentence"
        copy = pickle.loads(pickle.dumps(made))
        assert type(copy) is kind and str(copy) == "a sentence" and copy.status == kind.status
