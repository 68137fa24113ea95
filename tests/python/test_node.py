"""Nodes, regions and blocking transfers."""

import gc
import signal
import threading
import weakref

import numpy as np
import pytest

import hmc
from node_peers import SERVER, pair
from peers import PATIENCE, Child

RECEIVER = """
import hmc
with hmc.Node(listen="tcp://127.0.0.1:0") as node:
    inbox = node.allocate(1 << 20, name="inbox")
    print(node.address, flush=True)
    note = node.next_note()
    print(note.data.decode(), bytes(inbox[:5]).decode(), flush=True)
"""

SENDER = """
import sys, hmc
with hmc.Node() as node:
    peer = node.connect(sys.argv[1])
    peer.open("inbox").put(b"hello")
    peer.notify(b"sent")
"""


@pytest.fixture(params=["ipc", "tcp"])
def nodes(request):
    with pair([request.param]) as made:
        yield made


def test_two_processes_need_less_than_ten_lines_each():
    assert max(len(side.strip().splitlines()) for side in (RECEIVER, SENDER)) <= 10
    with Child(RECEIVER) as receiver:
        with Child(SENDER, receiver.answer()) as sender:
            assert receiver.answer() == "sent hello"
            assert sender.ends() == 0, sender.errors
            assert receiver.ends() == 0, receiver.errors


def test_put_is_there_when_it_returns_and_get_brings_it_back(nodes):
    a, b, to_a = nodes
    target = a.allocate(1 << 20, name="target")
    local = b.allocate(1 << 20)
    remote = to_a.open("target")
    assert len(remote) == remote.nbytes == 1 << 20
    assert (remote.device, remote.access, remote.name) == ("cpu", "rw", "target")
    assert remote.transport in remote.path
    for size in (1, 8, 4096, 65536, 1 << 20):
        np.asarray(local)[:size] = np.random.default_rng(size).integers(0, 256, size)
        remote.put(local[:size])
        assert bytes(target[:size]) == bytes(local[:size])
        memoryview(local)[:] = bytes(len(local))
        remote.get(local[:size], timeout=PATIENCE)
        assert bytes(target[:size]) == bytes(local[:size])


def test_any_array_is_a_local_side(nodes):
    a, _, to_a = nodes
    target = a.allocate(4096, name="target")
    remote = to_a.open("target")
    for source in (b"bytes", bytearray(b"array"), memoryview(b"views"),
                   np.arange(100, dtype=np.float64), np.arange(20, dtype=np.int16)[::2]):
        remote.put(source)
        expected = source.tobytes() if hasattr(source, "tobytes") else bytes(source)
        assert bytes(target[:len(expected)]) == expected
    into = np.zeros(10, dtype=np.int16)
    remote.get(into)
    assert into.tolist() == list(range(0, 20, 2))
    remote.put(b"")
    assert bytes(target[:2]) == into.tobytes()[:2]


def test_what_cannot_receive_is_refused(nodes):
    a, b, to_a = nodes
    a.allocate(4096, name="gone")
    a.unregister("gone")
    target = a.allocate(4096, name="target")
    remote = to_a.open("target")
    with pytest.raises(ValueError, match="read-only"):
        remote.get(b"1234")
    with pytest.raises(ValueError, match="not contiguous"):
        remote.get(np.zeros(10)[::2])
    with pytest.raises(hmc.InvalidArgument, match="read-only"):
        remote.get(b.register(b"1234", access="r"))
    with pytest.raises(TypeError, match="int"):
        remote.put(5)
    with pytest.raises(hmc.NotFound, match="\"target\""):
        to_a.open("gone")
    with pytest.raises(hmc.InvalidArgument, match="another Node"):
        remote.put(target)


def test_arguments_that_do_not_fit_are_refused_by_name(nodes):
    a, _, to_a = nodes
    a.allocate(64, name="there")
    remote = to_a.open("there")
    local = bytearray(8)
    for sentence, call in (
            (r"put\(\) needs local", lambda: remote.put()),
            (r"get\(\) takes at most 3 arguments, not 4", lambda: remote.get(local, 1, 2, 3)),
            (r"put\(\) has no parameter 'wait'", lambda: remote.put(local, wait=1)),
            (r"put\(\) was given local twice", lambda: remote.put(local, local=local)),
            ("timeout is .1.: pass seconds", lambda: remote.put(local, timeout="1")),
            ("without its __init__", lambda: remote.put(hmc.Region.__new__(hmc.Region))),
            ("without its __init__", lambda: type(remote).__new__(type(remote)).get(local))):
        with pytest.raises(TypeError, match=sentence):
            call()
    remote.put(local=local, timeout=30)
    remote.get(local, timeout=30.5)


def test_registered_arrays_are_not_copied(nodes):
    a, b, to_a = nodes
    array = np.zeros((4, 8), dtype=np.float32)
    region = a.register(array, name="weights")
    assert region.nbytes == array.nbytes and region.pointer == array.ctypes.data
    assert (region.name, region.access, region.device) == ("weights", "rw", "cpu")
    local = b.register(np.arange(32, dtype=np.float32).reshape(4, 8))
    to_a.open("weights").put(local)
    assert array.ravel().tolist() == list(range(32))


def test_a_region_keeps_its_array_alive_and_no_longer(nodes):
    a, _, to_a = nodes

    class Array(np.ndarray):
        pass

    array = np.zeros(4096, dtype=np.uint8).view(Array)
    alive = weakref.ref(array)
    region = a.register(array, name="kept")
    del array
    gc.collect()
    to_a.open("kept")[10:13].put(b"abc")
    assert bytes(alive()[10:13]) == b"abc"
    part = region[10:13]
    del region
    a.unregister("kept")
    gc.collect()
    assert alive() is not None and bytes(part) == b"abc"
    del part
    gc.collect()
    assert alive() is None
    a.allocate(1, name="kept")


def test_the_node_keeps_what_has_a_name(nodes):
    a, _, to_a = nodes
    array = np.zeros(8, dtype=np.uint8)
    a.register(array, name="kept")
    gc.collect()
    to_a.open("kept").put(b"12345678")
    assert array.tobytes() == b"12345678"


def test_views_keep_the_region(nodes):
    a, _, _ = nodes
    region = a.allocate(4096, name="pool")
    view = np.asarray(region)
    view[7] = 9
    assert memoryview(region)[7] == 9
    a.unregister("pool")
    with pytest.raises(hmc.NotFound, match="pool"):
        a.unregister("pool")
    del region
    with pytest.raises(hmc.AlreadyExists):
        a.allocate(1, name="pool")
    del view
    a.allocate(1, name="pool")


def test_read_only_objects_need_access_r(nodes):
    a, b, to_a = nodes
    with pytest.raises(hmc.InvalidArgument, match='access="r"'):
        a.register(b"constant", name="constant")
    region = a.register(b"constant", name="constant", access="r")
    assert memoryview(region).readonly
    remote = to_a.open("constant")
    assert remote.access == "r"
    into = bytearray(8)
    remote.get(into)
    assert into == b"constant"
    with pytest.raises(hmc.PermissionDenied):
        remote.put(b"x")


def test_slices_are_those_of_arrays(nodes):
    a, b, to_a = nodes
    target = a.allocate(100, name="target")
    memoryview(target)[:] = bytes(range(100))
    remote = to_a.open("target")
    local = b.allocate(100)
    for cut in (slice(None), slice(10), slice(10, None), slice(-10, None), slice(5, -5),
                slice(0, 0), slice(100, 100), slice(20, 30, 1)):
        part = local[:len(remote[cut])]
        remote[cut].get(part)
        assert bytes(part) == bytes(range(100))[cut] == bytes(target[cut])
    assert bytes(target[10:50][-10:][2:4]) == bytes([42, 43])
    assert remote[10:50][-10:].nbytes == 10
    remote[10:20][5:].put(b"ab")
    assert bytes(target[15:17]) == b"ab"


def test_slices_that_are_none_are_refused_with_numbers(nodes):
    a, _, to_a = nodes
    target = a.allocate(100, name="target")
    remote = to_a.open("target")
    for sliced in (target, remote):
        for start, stop in ((0, 101), (-101, 5), (8, 4)):
            with pytest.raises(IndexError, match=r"slice\(%d, %d.*100 bytes" % (start, stop)):
                sliced[start:stop]
        with pytest.raises(hmc.InvalidArgument, match="strided"):
            sliced[::2]
        with pytest.raises(TypeError, match="slices"):
            sliced[3]
    with pytest.raises(hmc.OutOfRange, match="put of 11 bytes.*the 10 bytes"):
        remote[10:20].put(b"elevenbytes")
    with pytest.raises(hmc.OutOfRange, match="get of 11 bytes.*the 10 bytes"):
        remote[10:20].get(bytearray(11))


def test_options_that_are_none_are_refused():
    for options, words in (({"heartbeat": 0}, "heartbeat of 0"), ({"lease": -1}, "lease of -1"),
                           ({"channels": 99}, "99"), ({"transports": ["pigeon"]}, "pigeon"),
                           ({"listen": "nowhere"}, "nowhere")):
        with pytest.raises(ValueError, match=words):
            hmc.Node(**options)
    with pytest.raises(TypeError):
        hmc.Node("positional")
    with pytest.raises(TypeError, match="transports is 5: pass a list of names, or one name"):
        hmc.Node(transports=5)
    with pytest.raises(ValueError, match="2 certificates"):
        hmc.Node(certificates=["ca.pem", "key.pem"])
    with hmc.Node() as node:
        assert node.address is None and node.name
        for call, words in ((lambda: node.allocate(8, device="abacus:1"), "abacus:1"),
                            (lambda: node.allocate(8, device="cuda:x"), "cuda:x"),
                            (lambda: node.allocate(8, access="w"), '"w"'),
                            (lambda: node.register(bytearray()), "empty"),
                            (lambda: node.register(np.zeros(10)[::2]), "not contiguous"),
                            (lambda: node.peer("x", timeout=-1), "-1"),
                            (lambda: node.peer("x", timeout=float("nan")), "nan")):
            with pytest.raises(ValueError, match=words):
                call()
        with pytest.raises(TypeError, match="timeout is 'soon': pass seconds as a number, or None"):
            node.peer("x", timeout="soon")


def test_a_single_transport_needs_no_list_and_a_timeout_of_none_does_not_end():
    with hmc.Node(transports="tcp", listen="tcp://127.0.0.1:0") as node:
        assert [path.transport for path in node.transports()] == ["tcp"]
        node.allocate(8, name="target")
        with hmc.Node(name="b", transports=("tcp",)) as other:
            remote = other.connect(node.address, timeout=None).open("target", timeout=None)
            remote.put(b"12345678", timeout=None)
            other.peers()[0].notify(b"", timeout=None)
            node.next_note(timeout=None)


def test_explains_itself(nodes):
    a, b, to_a = nodes
    a.allocate(8, name="x")
    used = to_a.open("x").transport
    assert [path.transport for path in to_a.explain() if path.preferred] == [used]
    assert all(path.reason for path in b.transports())
    predicted = [path.predicted_ns for path in to_a.explain(device="cpu", nbytes=4096)
                 if path.preferred]
    assert predicted[0] > 0
    assert to_a.probe().version == hmc.__version__
    assert [peer.name for peer in a.peers()] == ["b"] and a.peer("b") == a.peers()[0]
    assert len({to_a, b.peer("a")}) == 1 and to_a != a.peer("b")
    for shown in (a, to_a, a.allocate(8), to_a.open("x"), b.transports()[0]):
        assert repr(shown).startswith("<hmc.")


def test_a_closed_node_answers_with_an_error_and_wakes_who_waits():
    node = hmc.Node()
    outcome = []

    def wait():
        try:
            node.next_note(timeout=PATIENCE)
        except hmc.PeerLost as error:
            outcome.append(str(error))

    waiter = threading.Thread(target=wait)
    waiter.start()
    node.close()
    waiter.join(timeout=PATIENCE)
    assert "closed" in outcome[0]
    for call in (lambda: node.listen("tcp://127.0.0.1:0"), lambda: node.allocate(8),
                 lambda: node.connect("tcp://127.0.0.1:1"), lambda: node.peer("x")):
        with pytest.raises(hmc.PeerLost, match="closed"):
            call()
    node.close()


def test_what_a_node_made_keeps_it_open():
    def opened():
        with Child(SERVER) as server:
            yield hmc.Node().connect(server.answer()).open("pool")

    for remote in opened():
        gc.collect()
        into = bytearray(4)
        remote.get(into)
        assert into == b"\7\7\7\7"


def test_a_peer_that_dies_is_lost():
    with Child(SERVER, "tcp") as server, hmc.Node() as node:
        peer = node.connect(server.answer())
        remote = peer.open("pool")
        assert node.next_peer_event(timeout=PATIENCE).kind == "joined"
        server.send(signal.SIGKILL)
        server.ends()
        with pytest.raises(ConnectionError):
            while True:
                remote.put(b"anyone?", timeout=PATIENCE)
        # The data's connection may have ended first.
        assert node.next_peer_event(timeout=PATIENCE).kind == "left"
        assert not peer.connected


def test_other_threads_run_while_a_get_waits():
    with Child(SERVER, "tcp") as server, hmc.Node(lease=PATIENCE) as node:
        remote = node.connect(server.answer()).open("pool")
        server.stop()
        into = bytearray(1 << 20)
        getter = threading.Thread(target=remote.get, args=(into,), kwargs={"timeout": PATIENCE})
        getter.start()
        for _ in range(1000000):  # would not get anywhere while a get held the GIL
            pass
        assert getter.is_alive() and into == bytes(len(into))
        server.send(signal.SIGCONT)
        getter.join(timeout=PATIENCE)
        assert into == b"\7" * len(into)


def test_a_put_that_is_late_is_cancelled():
    with Child(SERVER, "tcp") as server, hmc.Node(lease=0.5, heartbeat=0.1) as node:
        remote = node.connect(server.answer()).open("pool")
        server.stop()
        with pytest.raises(TimeoutError, match="put of 8388608 bytes"):
            remote.put(bytes(8 << 20), timeout=0.1)


def test_encrypted_processes_meet_and_others_are_refused():
    encrypted = SERVER.replace('name="server"', 'name="server", secret="hush", tls="required"')
    with Child(encrypted, "tcp") as server:
        address = server.answer()
        with hmc.Node(secret="hush", tls="required") as node:
            remote = node.connect(address).open("pool")
            assert remote.path == "tcp (tls, 2 streams)"
            local = node.allocate(1 << 20)
            remote[:1 << 20].get(local)
            assert bytes(local) == bytes([7]) * len(local)
        with hmc.Node(secret="hush") as plain:
            with pytest.raises(hmc.PermissionDenied, match="demands TLS"):
                plain.connect(address)
        with hmc.Node(secret="shush", tls="required") as stranger:
            with pytest.raises(hmc.PermissionDenied, match="the same secret"):
                stranger.connect(address)


def test_tls_that_is_not_whole_is_refused():
    for wrong in ({"tls": "on"}, {"tls": "required"}, {"tls": "required", "certificates": ["ca.pem"]},
                  {"secret": "hush", "tls": "required", "tls_exceptions": ["vrebs"]},
                  {"secret": "hush", "tls": "required", "tls_crl": "crl.pem"}):
        with pytest.raises(hmc.InvalidArgument):
            hmc.Node(**wrong)
