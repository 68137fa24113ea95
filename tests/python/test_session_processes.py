"""Sessions in processes of their own: waiting, dying, forking, ending."""

import os
import signal
import threading

import pytest

import hmc
from peers import HERE, PATIENCE, SERVER, Child, free_port

FOREVER = SERVER + """
for line in sys.stdin: print("echo", line.strip())
"""


@pytest.fixture
def server(tmp_path):
    data, ctrl = free_port(), free_port()
    with Child(FOREVER, 1 << 22, data, ctrl, tmp_path, HMC_LEASE_MS="60000") as child:
        assert child.answer() == "ready"
        child.data, child.ctrl, child.folder = data, ctrl, str(tmp_path)
        yield child


def connected(server, conn):
    client = hmc.create_session(buffer_size=1 << 22, local_ip=HERE)
    client.connect(peer_id=0, self_id=1, peer_ip=HERE, data_port=server.data,
                   ctrl_tcp_port=server.ctrl, uds_dir=server.folder, conn=conn)
    return client


class Counter(threading.Thread):
    """Counts as long as it can run Python, and tells when it has counted on."""

    def __init__(self):
        super().__init__(daemon=True)
        self.count = 0
        self.stopped = False
        self.start()

    def run(self):
        while not self.stopped:
            self.count += 1

    def counts_on(self, thread):
        """Does it count while the other thread waits in a call?"""
        for _ in range(3):
            before = self.count
            thread.join(0.05)
            if self.count == before or not thread.is_alive():
                return False
        return True


@pytest.mark.parametrize("conn", [hmc.ConnType.TCP, hmc.ConnType.UCX], ids=lambda conn: conn.name)
def test_other_threads_run_while_a_get_waits(server, conn, monkeypatch):
    monkeypatch.setenv("HMC_LEASE_MS", "60000")
    with connected(server, conn) as client:
        client.get_remote(HERE, server.data, 0, 0, 8, conn)
        os.kill(server.process.pid, signal.SIGSTOP)
        os.waitpid(server.process.pid, os.WUNTRACED)  # it has stopped
        try:
            getting = threading.Thread(target=client.get_remote,
                                       args=(HERE, server.data, 0, 0, 8, conn))
            getting.start()
            counter = Counter()
            assert counter.counts_on(getting)
        finally:
            os.kill(server.process.pid, signal.SIGCONT)
        getting.join(PATIENCE)
        counter.stopped = True
        counter.join(PATIENCE)
        assert not getting.is_alive()


def test_other_threads_run_while_a_tag_is_waited_for(server):
    with connected(server, hmc.ConnType.AUTO) as client:
        tags = []

        def receive():
            with pytest.raises(hmc.PeerLost):
                client.ctrl_recv(0, timeout=PATIENCE)
            tags.append("lost")

        receiving = threading.Thread(target=receive)
        receiving.start()
        counter = Counter()
        assert counter.counts_on(receiving)
        server.process.kill()
        receiving.join(PATIENCE)
        counter.stopped = True
        counter.join(PATIENCE)
        assert tags == ["lost"]


def test_a_peer_that_dies_is_lost_and_can_come_back(server, tmp_path):
    with connected(server, hmc.ConnType.TCP) as client:
        server.process.kill()
        server.process.wait(PATIENCE)
        with pytest.raises((hmc.PeerLost, hmc.NotConnected)):
            while True:  # until the news has come
                client.put_remote(HERE, server.data, 0, 0, 8, hmc.ConnType.TCP)
        assert not client.check_conn(HERE, server.data, hmc.ConnType.TCP)
        with Child(FOREVER, 1 << 22, server.data, server.ctrl, tmp_path) as again:
            assert again.answer() == "ready"
            client.connect(peer_id=0, self_id=1, peer_ip=HERE, data_port=server.data,
                           ctrl_tcp_port=server.ctrl, uds_dir=server.folder,
                           conn=hmc.ConnType.TCP)
            client.put_remote(HERE, server.data, 0, 0, 8, hmc.ConnType.TCP)


INTERRUPTED = """
import hmc, sys, threading
sess = hmc.create_session(buffer_size=4096)
print("waiting")
try:
    sess.ctrl_recv(peer=5)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_ends_a_wait():
    with Child(INTERRUPTED) as child:
        assert child.answer() == "waiting"
        os.kill(child.process.pid, signal.SIGINT)
        status, rest = child.finish()
        assert (status, rest) in [(0, "interrupted\n")] or "KeyboardInterrupt" in child.errors


FORKING = SERVER + """
import os
client = hmc.create_session(buffer_size=size, local_ip="127.0.0.1")
client.connect(peer_id=0, self_id=1, peer_ip="127.0.0.1", data_port=data, ctrl_tcp_port=ctrl,
               uds_dir=folder, conn=hmc.ConnType.AUTO)
client.put_remote("127.0.0.1", data, 0, 0, 8, hmc.ConnType.AUTO)
child = os.fork()
if child == 0:
    for call in (lambda: client.put_remote("127.0.0.1", data, 0, 0, 8, hmc.ConnType.AUTO),
                 lambda: client.get_remote("127.0.0.1", data, 0, 0, 8, hmc.ConnType.AUTO),
                 lambda: client.ctrl_recv(0, timeout=5), lambda: client.ctrl_send(0, 1)):
        try:
            call()
            print("no error")
        except hmc.HMCError as error:
            print("fork" in str(error), error)
    with hmc.create_session(buffer_size=4096) as own:
        own.init_server("127.0.0.1", int(sys.argv[5]), hmc.ConnType.TCP)
    print("end of child")
    sys.exit(0)
_, status = os.waitpid(child, 0)
print("child ended with", status)
client.buf.put(b"parent")
client.put_remote("127.0.0.1", data, 0, 0, 6, hmc.ConnType.AUTO)
print(bytes(sess.buf.buffer_get_cpu(nbytes=6)))
"""


def test_a_forked_child_is_told_to_make_its_own_session(tmp_path):
    with Child(FORKING, 4096, free_port(), free_port(), tmp_path, free_port()) as child:
        assert child.answer() == "ready"
        status, rest = child.finish()
        lines = rest.splitlines()
        assert [line.split()[0] for line in lines[:4]] == ["True"] * 4, rest + child.errors
        assert lines[4:] == ["end of child", "child ended with 0", "b'parent'"]
        assert status == 0


ENDINGS = {
    "globals": "",
    "a cycle": "loop = [sess, client]; loop.append(loop); del sess, client",
    "threads": """
import threading
for who in (sess, client):
    threading.Thread(target=lambda who=who: who.ctrl_recv(99, timeout=600), daemon=True).start()
""",
    "busy threads": """
import threading
def work():
    while True: client.put_remote("127.0.0.1", data, 0, 0, 100000, hmc.ConnType.TCP)
for _ in range(3): threading.Thread(target=work, daemon=True).start()
for _ in range(50): client.get_remote("127.0.0.1", data, 0, 0, 100000, hmc.ConnType.TCP)
""",
    "a module": "made = sys.modules['made'] = type(sys)('made'); made.kept = sess",
    "an exception": "raise SystemExit(0)",
    "transfers under way": "ids = [client.put_nb('127.0.0.1', data, 0, 0, size, hmc.ConnType.TCP)"
                           " for _ in range(20)]",
    "atexit": "import atexit; atexit.register(lambda: print(client.check_conn('127.0.0.1', data, "
              "hmc.ConnType.TCP)))",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_interpreter_ends_with_sessions_alive(ending, tmp_path):
    code = SERVER + """
client = hmc.create_session(buffer_size=size, local_ip="127.0.0.1")
client.connect(peer_id=0, self_id=1, peer_ip="127.0.0.1", data_port=data, ctrl_tcp_port=ctrl,
               uds_dir=folder, conn=hmc.ConnType.TCP)
""" + ENDINGS[ending]
    for _ in range(3):
        with Child(code, 1 << 20, free_port(), free_port(), tmp_path) as child:
            assert child.answer() == "ready"
            status, _ = child.finish()
            assert status == 0, child.errors
            assert "terminate" not in child.errors and "Fatal" not in child.errors
