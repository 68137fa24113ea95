"""Memory of an accelerator, which is a fake one here, and of objects that only speak DLPack."""

import numpy as np

from node_peers import pair
from peers import Child
from places import plugin

# `held` has only the interface, as arrays of other libraries do.
DEVICES = """
import hmc

class Held:
    def __init__(self, region):
        self.region = region
        self.__cuda_array_interface__ = region.__cuda_array_interface__

with hmc.Node(listen="tcp://127.0.0.1:0") as a, hmc.Node() as b:
    memory = a.allocate(4096, device="cuda:0")
    assert memory.device == "cuda:0", memory
    try:
        memoryview(memory)
    except BufferError as error:
        assert "cuda:0" in str(error)
    else:
        raise AssertionError("the CPU cannot see this memory")
    interface = memory[8:].__cuda_array_interface__
    assert interface["data"] == (memory.pointer + 8, False) and interface["shape"] == (4088,)
    assert not hasattr(a.allocate(8), "__cuda_array_interface__")

    a.register(Held(memory), name="held")
    remote = b.connect(a.address).open("held")
    assert remote.device == "cuda:0", remote
    remote[100:105].put(b"hello")
    into = bytearray(5)
    remote[100:105].get(into)
    assert into == b"hello"

    mine = b.allocate(64, device="cuda")
    remote[100:105].get(mine[:5])
    remote[200:205].put(Held(mine[:5]))
    remote[200:205].get(into)
    assert into == b"hello"
    print("moved")
"""


def test_device_memory_moves_like_any_other():
    with Child(DEVICES, HMC_MEMORY_PLUGIN=plugin(), HMC_FAKE_KIND="cuda") as user:
        assert user.answer() == "moved"
        assert user.ends() == 0, user.errors


class OnlyDlpack:
    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__()

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def test_dlpack_objects_are_registered_without_a_copy():
    array = np.zeros(16, dtype=np.float32)
    with pair() as (a, _, to_a):
        region = a.register(OnlyDlpack(array), name="capsule")
        assert region.pointer == array.ctypes.data and region.nbytes == array.nbytes
        to_a.open("capsule").put(OnlyDlpack(np.arange(16, dtype=np.float32)))
    assert array.tolist() == list(range(16))
