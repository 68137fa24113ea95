"""Sessions that talk to each other, in this process and in others."""

import contextlib
import importlib.util
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading

import pytest

import hmc

HERE = "127.0.0.1"
PATIENCE = 120


def free_port():
    """Outside the range that the kernel gives to outgoing connections."""
    while True:
        port = random.randrange(12000, 32000)
        with socket.socket() as probe:
            if probe.connect_ex((HERE, port)) != 0:
                return port


def need(module):
    """Skip unless children can import it. Importing it here as well would take torch seconds."""
    if importlib.util.find_spec(module) is None:
        pytest.skip(module + " is not installed")


class Pair:
    """A server of rank 0 and a client of rank 1, connected as in the second generation."""

    def __init__(self, conn=hmc.ConnType.AUTO, size=1 << 20, client_size=None):
        self.conn = conn
        self.folder = tempfile.TemporaryDirectory()
        self.port, self.rdma_port, self.ctrl_port = free_port(), free_port(), free_port()
        self.server = hmc.create_session(buffer_size=size, local_ip=HERE)
        self.server.init_server(bind_ip=HERE, ucx_port=self.port, rdma_port=self.rdma_port,
                                ctrl_tcp_port=self.ctrl_port, self_id=0,
                                ctrl_uds_dir=self.folder.name)
        self.client = hmc.create_session(buffer_size=client_size or size, local_ip=HERE)
        self.client.connect(peer_id=0, self_id=1, peer_ip=HERE, data_port=self.port,
                            ctrl_tcp_port=self.ctrl_port, uds_dir=self.folder.name, conn=conn)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.close()
        self.server.close()
        self.folder.cleanup()


class Child:
    """A Python program in its own process, which reads and prints lines."""

    def __init__(self, code, *arguments, prefix=(), **environment):
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-u", "-c", code, *map(str, arguments)],
            env={**os.environ, **environment}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        self._errors = []
        self._drain = threading.Thread(target=self._read_errors, daemon=True)
        self._drain.start()
        # Kill it after that long, so that reading from it ends.
        self._patience = threading.Timer(PATIENCE, self.process.kill)
        self._patience.start()

    def _read_errors(self):
        for line in self.process.stderr:
            self._errors.append(line)

    @property
    def errors(self):
        self._drain.join(PATIENCE)
        return "".join(self._errors)

    def answer(self):
        """The next line that it prints."""
        line = self.process.stdout.readline()
        if not line:
            self.process.wait(PATIENCE)
            raise AssertionError("it ended with %s: %s" % (self.process.returncode, self.errors))
        return line.rstrip("\n")

    def ask(self, line=""):
        self.tell(line)
        return self.answer()

    def tell(self, line=""):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def stop(self):
        """Stop it in its tracks, and return when it stands."""
        self.send(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)

    def send(self, number):
        self.process.send_signal(number)

    def ends(self):
        """Its exit status, when it ends by itself."""
        return self.process.wait(PATIENCE)

    def finish(self):
        """Its exit status and whatever else it printed."""
        self.process.stdin.close()
        rest = self.process.stdout.read()
        return self.process.wait(PATIENCE), rest

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._patience.cancel()
        self.process.kill()
        self.process.wait(PATIENCE)
        self._drain.join(PATIENCE)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(OSError):
                stream.close()


# What a child needs to play the server of a Pair: buffer size, data port, control port, folder.
SERVER = """
import hmc, sys
size, data, ctrl, folder = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
sess = hmc.create_session(buffer_size=size, local_ip="127.0.0.1")
sess.init_server(bind_ip="127.0.0.1", ucx_port=data, rdma_port=0, ctrl_tcp_port=ctrl, self_id=0,
                 ctrl_uds_dir=folder)
print("ready")
"""
