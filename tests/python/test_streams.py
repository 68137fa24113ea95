"""Transfers that are ordered with streams, on the fake CUDA driver and a stand-in for torch."""

import numpy as np
import pytest

import hmc
from hmc import arrays
from node_peers import pair
from peers import Child
from places import fake_driver

# A node `a` with "target" on the device, a node `b` with the memory of `tensor`, and a stream on
# which torch works. `kernel` writes 'k' to that memory, and runs when the stream is let go.
DEVICE = """
import ctypes, sys, types
import hmc

SIZE = 3 << 20
PIECES = dict(local_stride=SIZE // 4, remote_stride=SIZE // 4, count=4, length=SIZE // 4)
driver = ctypes.CDLL("libcuda.so.1")
synchronised = []


def call(name, *arguments):
    code = getattr(driver, name)(*arguments)
    assert code == 0, (name, code)


class Stream:
    def __init__(self):
        handle, word = ctypes.c_void_p(), ctypes.c_void_p()
        call("cuStreamCreateWithPriority", ctypes.byref(handle), 1, 0)
        call("cuMemHostAlloc", ctypes.byref(word), ctypes.c_size_t(4), 0)
        self.cuda_stream, self.word = handle.value, word.value

    def synchronize(self):
        synchronised.append(self)

    def kernel(self, pointer):
        stream = ctypes.c_void_p(self.cuda_stream)
        call("cuStreamWaitValue32_v2", stream, ctypes.c_uint64(self.word), ctypes.c_uint32(1), 0)
        call("cuMemsetD8Async", ctypes.c_uint64(pointer), ctypes.c_ubyte(ord("k")),
             ctypes.c_size_t(SIZE), stream)

    def let_go(self):
        ctypes.c_uint32.from_address(self.word).value = 1


class Tensor:
    layout, shape, device = "torch.strided", (SIZE,), types.SimpleNamespace(type="cuda", index=0)
    stride = lambda self: (1,)
    element_size = lambda self: 1
    data_ptr = lambda self: memory.pointer


class Array:
    def __init__(self, stream):
        self.__cuda_array_interface__ = dict(memory.__cuda_array_interface__, stream=stream)


def content(region):
    data = bytearray(SIZE)
    region.get(data)
    return set(data)


a = hmc.Node(listen="tcp://127.0.0.1:0", transports=sys.argv[1:])
b = hmc.Node(listen="tcp://127.0.0.1:0", transports=sys.argv[1:])
a.allocate(SIZE, name="target", device="cuda:0")
remote = b.connect(a.address).open("target")
memory = b.allocate(SIZE, name="memory", device="cuda:0")
mine = a.connect(b.address).open("memory")
mine.put(b"o" * SIZE)
tensor = Tensor()
context = ctypes.c_void_p()
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
call("cuCtxPushCurrent_v2", context)
current, other = Stream(), Stream()
sys.modules["torch"] = torch = types.ModuleType("torch")
torch.cuda = types.SimpleNamespace(current_stream=lambda device: current,
                                   is_initialized=lambda: True)
"""

DONE = """
assert not synchronised
print("done")
a.close()
b.close()
"""

# `LOCAL` is the local side and `MORE` further arguments: either way `STREAM` is the stream.
PUT_WAITS = """
STREAM.kernel(memory.pointer)
transfers = [remote.start_put(LOCALMORE),
             remote.start_put_blocks(LOCAL, [0], [0], SIZEMORE),
             remote.start_put_strided(LOCAL, **PIECESMORE)]
assert not any(transfer.done() for transfer in transfers)
assert content(remote) == {0}
STREAM.let_go()
hmc.wait_all(transfers)
assert content(remote) == {ord("k")}
"""

# A put that did not wait would be over long before the bytes at the peer have been looked at.
BLOCKING_PUT_WAITS = """
import threading
current.kernel(memory.pointer)
putting = threading.Thread(target=lambda: remote.PUT)
putting.start()
assert content(remote) == {0}
current.let_go()
putting.join()
assert content(remote) == {ord("k")}
"""

GET_HOLDS = """
remote.put(b"g" * SIZE)
seen = ctypes.c_void_p()
call("cuMemHostAlloc", ctypes.byref(seen), ctypes.c_size_t(SIZE), 0)
current.kernel(memory.pointer)
transfer = remote.GET
call("cuMemcpyAsync", seen, ctypes.c_uint64(memory.pointer), ctypes.c_size_t(SIZE),
     ctypes.c_void_p(current.cuda_stream))
assert not transfer.done()
current.let_go()
call("cuCtxSynchronize")  # waits for the stream, and the stream for the get
assert set(ctypes.string_at(seen.value, SIZE)) == {ord("g")}
transfer.wait()
"""

# Torch's stream does not run, and that is of no importance.
OTHER_WINS = """
current.kernel(memory.pointer)
remote.put(tensor, stream=other)
remote.put(memory, stream=other.cuda_stream)
remote.put(tensor, stream=types.SimpleNamespace(ptr=other.cuda_stream))
remote.start_put(tensor, other).wait()
remote.put(tensor, 30, other)
assert content(remote) == {ord("o")}
current.let_go()
"""

TORCH_UNUSED = """
torch.cuda.is_initialized = lambda: False
torch.cuda.current_stream = None
remote.put(memory)
assert content(remote) == {ord("o")}
del sys.modules["torch"]
remote.put(memory)
"""

STREAM_CANNOT_WAIT = """
remote.put(b"g" * SIZE)
not_supported = 801
driver.hmcFakeCudaFail(b"cuStreamWaitValue32_v2", 1, not_supported)
remote.start_get(tensor).wait()
assert content(mine) == {ord("g")}
stream = ctypes.c_void_p(current.cuda_stream)
code = driver.cuStreamWaitValue32_v2(stream, ctypes.c_uint64(current.word), ctypes.c_uint32(0), 0)
assert code == 0, "the get did not try it"
"""

# As torch's own library answers: the handle of the current stream, which is 0 for the default one.
RAW_STREAM = """
asked = []
def raw_stream(index):
    asked.append(index)
    return handle

handle = other.cuda_stream
torch._C = types.SimpleNamespace(_cuda_getCurrentRawStream=raw_stream)
torch.cuda.is_initialized = lambda: False
current.kernel(memory.pointer)
remote.put(memory)
assert not asked, "torch does not use CUDA yet"
torch.cuda.is_initialized = lambda: True
torch.cuda.current_stream = None
remote.put(memory)
remote.put(tensor)
assert asked == [0, 0]
assert content(remote) == {ord("o")}
current.let_go()
handle = 0
remote.put(memory)
remote.put(tensor)
"""

# As torch's allocator does, the address of what was freed is used again.
REUSED_ADDRESS = """
torch.Tensor, torch.strided = Tensor, Tensor.layout
Tensor.is_cuda, Tensor.get_device, Tensor.numel = True, lambda self: 0, lambda self: SIZE
Tensor.is_conj = Tensor.is_neg = lambda self: False
Tensor.is_contiguous = lambda self: True
Tensor.stride = None  # for hmc.arrays alone
for letter in "xyz":
    made = ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(made), ctypes.c_size_t(SIZE))
    Tensor.data_ptr = lambda self: made.value
    call("cuMemsetD8Async", made, ctypes.c_ubyte(ord(letter)), ctypes.c_size_t(SIZE),
         ctypes.c_void_p(current.cuda_stream))
    remote.put(tensor)
    assert content(remote) == {ord(letter)}
    call("cuMemFree_v2", made)
"""

DEFAULT_STREAM = """
import hmc.arrays
current.cuda_stream = 0
assert hmc.arrays.stream_on("cuda:0") == 1
remote.put(tensor)
assert content(remote) == {ord("o")}
"""


@pytest.fixture(params=["ipc", "tcp"])
def play(request):
    """Runs a program on a machine with a CUDA driver, over one transport."""
    driver = fake_driver()

    def run(code):
        with Child(DEVICE + code + DONE, request.param, LD_LIBRARY_PATH=driver,
                   CUDA_VISIBLE_DEVICES="0") as user:
            assert user.answer() == "done"
            assert user.ends() == 0, user.errors
    return run


@pytest.mark.parametrize("local, more, stream", [
    ("tensor", "", "current"), ("memory", "", "current"), ("tensor", ", stream=other", "other"),
    ("Array(other.cuda_stream)", "", "other"),
    ("Array(other.cuda_stream)", ", stream=current", "current")])
def test_puts_wait_for_the_kernel_before_them_and_their_callers_do_not(play, local, more, stream):
    play(PUT_WAITS.replace("LOCAL", local).replace("MORE", more).replace("STREAM", stream))


@pytest.mark.parametrize("put", [
    "put(tensor)", "put(memory)", "put_blocks(tensor, [0], [0], SIZE)",
    "put_strided(tensor, **PIECES)"])
def test_a_blocking_put_waits_for_the_kernel_before_it(play, put):
    play(BLOCKING_PUT_WAITS.replace("PUT", put))


@pytest.mark.parametrize("get", [
    "start_get(tensor)", "start_get_blocks(tensor, [0], [0], SIZE)",
    "start_get_strided(tensor, **PIECES)"])
def test_a_kernel_after_a_started_get_sees_its_bytes(play, get):
    play(GET_HOLDS.replace("GET", get))


def test_a_get_is_started_where_streams_cannot_wait_for_it(play):
    play(STREAM_CANNOT_WAIT)


@pytest.mark.parametrize("code", [OTHER_WINS, TORCH_UNUSED, DEFAULT_STREAM, RAW_STREAM],
                         ids=["named", "torch unused", "default", "raw"])
def test_the_stream_is_the_named_one_or_the_one_in_use(play, code):
    play(code)


def test_a_tensor_at_the_address_of_one_that_is_gone_is_not_taken_for_it(play):
    play(REUSED_ADDRESS)


def test_memory_of_the_host_has_no_stream():
    with pair() as (a, b, to_a):
        a.allocate(64, name="pool")
        remote, mine = to_a.open("pool"), b.allocate(64)
        pieces = {"local_stride": 8, "remote_stride": 8, "count": 8, "length": 8}
        for local in (bytearray(64), np.zeros(64, dtype=np.uint8), mine):
            for call in (remote.put, remote.get, remote.start_put, remote.start_get):
                with pytest.raises(hmc.InvalidArgument, match="stream"):
                    call(local, stream=5)
            for call in (remote.put_blocks, remote.get_blocks, remote.start_put_blocks,
                         remote.start_get_blocks):
                with pytest.raises(hmc.InvalidArgument, match="stream"):
                    call(local, [0], [0], 64, stream=5)
            for call in (remote.put_strided, remote.get_strided, remote.start_put_strided,
                         remote.start_get_strided):
                with pytest.raises(hmc.InvalidArgument, match="stream"):
                    call(local, stream=5, **pieces)


@pytest.mark.parametrize("wrong", ["cuda:0", -1, 1.5])
def test_what_is_no_stream_is_refused(wrong):
    with pair() as (a, _, to_a):
        a.allocate(8, name="pool")
        with pytest.raises(TypeError, match="no stream"):
            to_a.open("pool").put(b"bytes", stream=wrong)


class OnCuda:
    """DLPack's half of an array on a GPU; the memory behind it is the host's."""

    def __init__(self, versions):
        self.versions = versions
        self.array = np.zeros(4)
        self.asked = None

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, stream=None, **options):
        if options and not self.versions:
            raise TypeError("max_version is unknown")
        self.asked = stream
        return self.array.__dlpack__()


@pytest.mark.parametrize("versions", [False, True])
def test_a_dlpack_producer_is_asked_to_order_its_work_before_ours(versions):
    producer = OnCuda(versions)
    assert arrays.span_of(producer).stream == 1
    assert producer.asked == 1
