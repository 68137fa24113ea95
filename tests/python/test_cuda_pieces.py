"""CUDA memory that is made of several physical pieces, between two processes on the fake driver."""

import pytest

from peers import Child
from places import fake_driver

# Physical pieces of 2 MiB side by side in one range of addresses, as torch's expandable segments
# are: the number of pieces, and whether other processes may open them.
OWNER = """
import ctypes, sys
import hmc

PIECE = 2 << 20
driver = ctypes.CDLL("libcuda.so.1")
u64 = ctypes.c_uint64
count, shareable = int(sys.argv[1]), int(sys.argv[2])


def call(name, *arguments):
    code = getattr(driver, name)(*arguments)
    assert code == 0, (name, code)


node = hmc.Node(listen="tcp://127.0.0.1:0")
node.allocate(1, device="cuda:0")  # makes the context
pinned, device = 1, 1
properties = (ctypes.c_int * 8)(pinned, shareable, device, 0)  # CUmemAllocationProp
access = (ctypes.c_int * 3)(device, 0, 3)  # CUmemAccessDesc
base, handle = u64(), u64()
call("cuMemAddressReserve", ctypes.byref(base), u64(count * PIECE), u64(0), u64(0), u64(0))
for i in range(count):
    call("cuMemCreate", ctypes.byref(handle), u64(PIECE), properties, u64(0))
    call("cuMemMap", u64(base.value + i * PIECE), u64(PIECE), u64(0), handle, u64(0))
call("cuMemSetAccess", base, u64(count * PIECE), access, u64(1))


class Held:
    __cuda_array_interface__ = {"data": (base.value + 1000, False), "typestr": "|u1", "version": 3,
                                "shape": (count * PIECE - 3000,)}


node.register(Held(), name="held")
print(node.address)
sys.stdin.read()
node.close()
"""

USER = """
import sys
import hmc

node = hmc.Node()
remote = node.connect(sys.argv[1]).open("held")
print(remote.path)
data = bytes(i * 7 % 251 for i in range(1 << 20)) * (len(remote) // (1 << 20) + 1)
data = data[:len(remote)]
mine = node.allocate(len(remote), device="cuda:0")
remote.put(data)
remote.get(mine)
back = bytearray(len(remote))
remote.get(back)
assert back == data
remote[:5].put(b"hello")
remote[-5:].put(b"there")
remote.put(mine)
back = bytearray(len(remote))
remote.get(back)
assert back == data
node.close()
"""


def move(pieces, shareable):
    """Moves bytes there and back; answers the path and what was said about it."""
    driver = {"LD_LIBRARY_PATH": fake_driver(), "CUDA_VISIBLE_DEVICES": "0", "HMC_LOG": "warn"}
    with Child(OWNER, pieces, shareable, **driver) as owner:
        with Child(USER, owner.answer(), **driver) as user:
            path = user.answer()
            assert user.ends() == 0, user.errors
            return path, user.errors


@pytest.mark.parametrize("pieces", [1, 2, 7])
def test_pieces_are_mapped_side_by_side(pieces):
    path, said = move(pieces, shareable=1)
    assert path == "ipc (mapped)"
    assert not said


@pytest.mark.parametrize("pieces, shareable, why", [
    (3, 0, "TORCH_CUDA_EXPANDABLE_SEGMENTS_IPC"), (129, 1, "more than 128 pieces")])
def test_pieces_that_cannot_be_mapped_are_staged_and_the_user_is_told_why(pieces, shareable, why):
    path, said = move(pieces, shareable)
    assert path == "ipc (staged at the target)"
    assert why in said and "slower path" in said
