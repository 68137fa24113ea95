"""The other process of the tests of this folder, and what both know."""

import os
import subprocess
import sys
import threading

import pytest

import hmc

torch = pytest.importorskip("torch")

DEVICE = os.environ.get("HMC_TEST_DEVICE", "cuda:0")
if DEVICE != "cpu" and not torch.cuda.is_available():
    pytest.skip("there is no GPU that torch can use", allow_module_level=True)

PATIENCE = 120  # seconds for one answer of the other process
MIB = 1 << 20

# Both processes. Every byte depends on its place, and two seeds differ everywhere.
PATTERN = """
def pattern(size, seed, device):
    numbers = torch.arange(size, dtype=torch.int32, device=device)
    return ((numbers * 131 + (numbers >> 12) + seed) % 251).to(torch.uint8)
"""
exec(PATTERN)

# The process whose memory is opened: allocated by its Node, by torch's caching allocator (somewhere
# within a block) and on the host. It answers "check NAME SIZE SEED" and "clear NAME". What the Node
# allocated is reached by the driver, because torch needs numpy for __cuda_array_interface__.
OWNER = """
import ctypes
import sys
import torch
import hmc
""" + PATTERN + """
device, size = sys.argv[1], int(sys.argv[2])
node = hmc.Node(listen="tcp://127.0.0.1:0", transports=sys.argv[3:])
allocated = node.allocate(size, name="node", device=device)
block = torch.zeros(size + 5000, dtype=torch.uint8, device=device)
host = node.allocate(size, name="host")
memory = {"torch": block[1000:1000 + size], "host": torch.frombuffer(host, dtype=torch.uint8)}
node.register(memory["torch"], name="torch")
if device == "cpu":
    memory["node"] = torch.frombuffer(allocated, dtype=torch.uint8)


def driver(function, *arguments):
    code = getattr(ctypes.CDLL("libcuda.so.1"), function)(*arguments)
    assert code == 0, (function, code)


def clear(name):
    if name in memory:
        memory[name].zero_()
    else:
        driver("cuMemsetD8_v2", ctypes.c_uint64(allocated.pointer), ctypes.c_ubyte(0),
               ctypes.c_size_t(size))
    if device != "cpu":
        torch.cuda.synchronize()
    return "clear"


def content(name):
    if name in memory:
        return memory[name]
    copy = torch.empty(size, dtype=torch.uint8, device=device)
    driver("cuMemcpyDtoD_v2", ctypes.c_uint64(copy.data_ptr()), ctypes.c_uint64(allocated.pointer),
           ctypes.c_size_t(size))
    torch.cuda.synchronize()
    return copy


def check(name, count, seed):
    there, count = content(name), int(count)
    same = torch.equal(there[:count], pattern(count, int(seed), there.device))
    return "same" if same and not there[count:].any() else "different"


print(node.address, flush=True)
for line in sys.stdin:
    command, *words = line.split()
    print({"clear": clear, "check": check}[command](*words), flush=True)
"""


class Owner:
    """The other process, and a Node of ours that is connected to it."""

    def __init__(self, transport, size):
        self.process = subprocess.Popen(
            [sys.executable, "-c", OWNER, DEVICE, str(size), transport], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.transport = transport
        self.address = self.answer()
        self.node = hmc.Node(transports=[transport])
        self.peer = self.node.connect(self.address)

    def answer(self):
        guard = threading.Timer(PATIENCE, self.process.kill)
        guard.start()
        line = self.process.stdout.readline()
        guard.cancel()
        assert line, "the other process ended with %s" % self.process.wait(PATIENCE)
        return line.strip()

    def ask(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def open(self, name):
        """One of its regions, full of zeros."""
        assert self.ask("clear", name) == "clear"
        remote = self.peer.open(name)
        assert remote.transport == self.transport
        return remote

    def close(self):
        self.node.close()
        self.process.kill()
        self.process.communicate()
