"""Tensors of torch's expandable segments, which are made of many physical pieces."""

import pytest

from owner import DEVICE, MIB, PATTERN, torch
from peers import Child

if DEVICE == "cpu":
    pytest.skip("the CPU has no expandable segments", allow_module_level=True)

# A tensor within a block, and how many bytes each piece has. It answers "check SEED".
OWNER = """
import ctypes, sys
import torch
import hmc
""" + PATTERN + """
size = int(sys.argv[1])
block = torch.zeros(size + 5000, dtype=torch.uint8, device="cuda:0")
tensor = block[1000:1000 + size]
torch.cuda.synchronize()
MAPPING_SIZE = 18
piece = ctypes.c_size_t()
code = ctypes.CDLL("libcuda.so.1").cuPointerGetAttribute(
    ctypes.byref(piece), MAPPING_SIZE, ctypes.c_uint64(tensor.data_ptr()))
assert code == 0, code
node = hmc.Node(listen="tcp://127.0.0.1:0", transports=["ipc"])
node.register(tensor, name="tensor")
print(piece.value)
print(node.address)
for line in sys.stdin:
    _, count, seed = line.split()
    there = tensor[-int(count):]
    print("same" if torch.equal(there, pattern(int(count), int(seed), "cuda:0")) else "different")
"""

# Puts the last bytes of the tensor and gets them back.
USER = """
import sys
import torch
import hmc
""" + PATTERN + """
count = int(sys.argv[2])
node = hmc.Node(transports=["ipc"])
remote = node.connect(sys.argv[1]).open("tensor")
part = remote[len(remote) - count:]
tensor = pattern(count, 7, "cuda:0")
part.put(tensor)
back = torch.zeros_like(tensor)
part.get(back)
assert torch.equal(back, tensor)
offsets = list(range(0, count - 4096, 8192))
part.put_blocks(tensor, offsets, offsets, 4096)
print(remote.path)
sys.stdin.readline()
node.close()
"""


def move(size, count, **environment):
    """Answers the bytes of a piece, the path, and what was said about it."""
    environment = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True", "HMC_LOG": "warn",
                   **environment}
    with Child(OWNER, size, **environment) as owner:
        piece = int(owner.answer())
        with Child(USER, owner.answer(), count, **environment) as user:
            path = user.answer()
            assert owner.ask("check %d 7" % count) == "same"
            user.tell()
            assert user.ends() == 0, user.errors
            return piece, path, user.errors


def test_tensors_of_several_pieces_are_mapped():
    size = 100 * MIB + 3
    piece, path, said = move(size, size)
    assert piece < size
    assert path == "ipc (mapped)" and "slower path" not in said


def test_pieces_that_torch_lets_nobody_open_are_staged_and_the_user_is_told_the_variable():
    size = 50 * MIB + 3
    _, path, said = move(size, size, TORCH_CUDA_EXPANDABLE_SEGMENTS_IPC="0")
    assert path == "ipc (staged at the target)"
    assert "TORCH_CUDA_EXPANDABLE_SEGMENTS_IPC" in said


def test_more_pieces_than_a_key_carries_are_staged_and_the_user_is_told():
    size = 3 << 30
    if torch.cuda.mem_get_info(DEVICE)[0] < 2 * size:
        pytest.skip("the device has less than %d bytes free" % (2 * size))
    piece, path, said = move(size, MIB)
    if size // piece < 128:
        pytest.skip("torch's pieces are of %d bytes here" % piece)
    assert path == "ipc (staged at the target)"
    assert "more than 128 pieces" in said
