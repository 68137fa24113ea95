"""Two nodes in this process, and peers that are processes of their own."""

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading

import hmc

PATIENCE = 60


@contextlib.contextmanager
def pair(transports=None):
    """Nodes a and b, and b's Peer for a."""
    with hmc.Node(name="a", listen="tcp://127.0.0.1:0", transports=transports) as a:
        with hmc.Node(name="b", transports=transports) as b:
            yield a, b, b.connect(a.address, timeout=PATIENCE)


class Process:
    """Python code that runs in another process. It is gone when the `with` block is."""

    def __init__(self, code, *arguments, **environment):
        self._process = subprocess.Popen(
            [sys.executable, "-u", "-c", code] + [str(one) for one in arguments],
            env=dict(os.environ, **environment), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        self._lines = queue.Queue()
        self._errors = []
        self._readers = [threading.Thread(target=self._read, daemon=True),
                         threading.Thread(target=self._read_errors, daemon=True)]
        for reader in self._readers:
            reader.start()

    def _read(self):
        for line in self._process.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def _read_errors(self):
        self._errors.append(self._process.stderr.read())

    def line(self):
        """The next line that it prints."""
        line = self._lines.get(timeout=PATIENCE)
        assert line is not None, "it ended: " + self.errors()
        return line

    def say(self, line):
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def stop(self):
        """Stops it in its tracks, and returns when it stands."""
        self.send(signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WNOWAIT)

    def send(self, number):
        self._process.send_signal(number)

    def errors(self):
        """What it wrote to standard error, once it has ended."""
        self._process.wait(timeout=PATIENCE)
        for reader in self._readers:
            reader.join(timeout=PATIENCE)
        return "".join(self._errors)

    def ends(self):
        """Its exit status."""
        return self._process.wait(timeout=PATIENCE)

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self._process.kill()
        self._process.wait(timeout=PATIENCE)
        for reader in self._readers:
            reader.join(timeout=PATIENCE)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            with contextlib.suppress(BrokenPipeError):
                stream.close()


# A node with a region "pool" of 64 MiB whose every byte is 7. Waits for a line, then ends.
SERVER = """
import sys, hmc
with hmc.Node(name="server", listen="tcp://127.0.0.1:0", transports=sys.argv[1:] or None) as node:
    pool = node.allocate(64 << 20, name="pool")
    memoryview(pool)[:] = bytes([7]) * len(pool)
    print(node.address)
    sys.stdin.readline()
"""
