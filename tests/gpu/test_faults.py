"""What goes wrong with CUDA memory, on NVIDIA's driver; and what only that one has."""

import contextlib
import os
import shutil
import subprocess
import sys

import pytest

from cuda_faults import *  # noqa: F401,F403 (tests and fixtures)
from cuda_faults import DONE, DRIVER, SIZE, USER, owner_of, play
from owner import DEVICE
from peers import Child

if DEVICE == "cpu":
    pytest.skip("the CPU has no such faults", allow_module_level=True)


@pytest.fixture
def driver():
    return {}


# An assertion in a kernel of torch breaks the context as well.
OUT_OF_RANGE = """
import torch
tensor = torch.zeros(SIZE, dtype=torch.uint8, device="cuda:0")
device.put(tensor)
try:
    tensor[torch.tensor([SIZE + 5], device="cuda:0")]
    torch.cuda.synchronize()
except RuntimeError as error:
    assert "assert" in str(error), error
else:
    raise AssertionError("torch took an index that is out of range")
with error_in("CUDA_ERROR_ASSERT", "new process"):
    device.put(tensor, timeout=60)
host.put(b"h" * SIZE)
assert content(host) == b"h" * SIZE
"""


def test_an_index_out_of_range_in_torch_is_reported_as_a_broken_device(driver):
    play(OUT_OF_RANGE, driver, "ipc")


TORCH_OWNER = DRIVER + """
import torch
node = hmc.Node(listen="tcp://127.0.0.1:0")
tensor = torch.zeros(SIZE, dtype=torch.uint8, device="cuda:0")
node.register(tensor, name="device")
node.allocate(SIZE, name="host")
print(node.address)
sys.stdin.readline()
node.unregister("device")
del tensor
gc.collect()
torch.cuda.empty_cache()
print("given back")
sys.stdin.readline()
assert float((torch.ones(1000, device="cuda:0") * 2).sum()) == 2000
node.close()
"""


def test_torch_gives_memory_back_to_the_driver_that_a_peer_has_mapped(driver):
    code = """
mine = node.allocate(SIZE, device="cuda:0")
device.put(mine)
print("mapped")
sys.stdin.readline()
with error_in("was revoked by its owner"):
    device.put(mine, timeout=60)
host.put(mine)
assert content(host) == bytes(SIZE)
"""
    with Child(TORCH_OWNER) as owner, Child(USER + code + DONE, owner.answer(), "ipc") as user:
        assert user.answer() == "mapped"
        assert owner.ask() == "given back"
        assert user.ask() == "done"
        assert user.ends() == 0, user.errors
        owner.tell()
        assert owner.ends() == 0, owner.errors


@contextlib.contextmanager
def mps(folder):
    """NVIDIA's multi-process service: the environment of its clients, and commands for it."""
    control = shutil.which("nvidia-cuda-mps-control")
    if not control:
        pytest.skip("nvidia-cuda-mps-control is not installed")
    environment = {"CUDA_MPS_PIPE_DIRECTORY": str(folder), "CUDA_MPS_LOG_DIRECTORY": str(folder)}

    def run(*command, text=""):
        return subprocess.run(command, input=text, text=True, timeout=60, capture_output=True,
                              env={**os.environ, **environment})

    started = run(control, "-d")
    if started.returncode != 0:
        pytest.skip("nvidia-cuda-mps-control does not start: " + started.stdout + started.stderr)
    try:
        probe = run(sys.executable, "-c",
                    "import ctypes; print(ctypes.CDLL('libcuda.so.1').cuInit(0))")
        if probe.stdout.strip() != "0":
            pytest.skip("CUDA does not start under MPS here: cuInit says " + probe.stdout)
        yield environment, lambda text: run(control, text=text + "\n").stdout
    finally:
        run(control, text="quit\n")


def test_a_put_between_two_clients_of_mps(tmp_path):
    code = """
mine = node.allocate(SIZE, device="cuda:0")
host.put(b"m" * SIZE)
host.get(mine)
device.put(mine)
assert content(device) == b"m" * SIZE
print(device.path)
sys.stdin.readline()
"""
    with mps(tmp_path) as (environment, ask), \
            owner_of(SIZE, "ipc", **environment) as (_, address), \
            Child(USER + code + DONE, address, "ipc", **environment) as user:
        assert user.answer() == "ipc (mapped)"
        assert ask("get_server_list").strip(), "nobody uses the service"
        assert user.ask() == "done"
        assert user.ends() == 0, user.errors
