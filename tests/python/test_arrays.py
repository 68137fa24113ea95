"""What memory an object is, whatever array library it comes from."""

import array
import ctypes

import pytest

from hmc import arrays

np = pytest.importorskip("numpy")


def bytes_at(span):
    return ctypes.string_at(span.pointer, span.nbytes) if span.nbytes else b""


@pytest.mark.parametrize("obj", [b"hello", bytearray(b"hello"), memoryview(b"hello"),
                                 array.array("b", b"hello"), (ctypes.c_char * 5)(*b"hello")],
                         ids=lambda obj: type(obj).__name__)
def test_reads_whatever_has_the_buffer_protocol(obj):
    span = arrays.source(obj)
    assert bytes_at(span) == b"hello"
    assert (span.device, span.contiguous) == ("cpu", True)
    assert span.writable == (not isinstance(obj, (bytes, memoryview)))


def test_counts_the_bytes_of_all_dimensions():
    view = memoryview(bytearray(24)).cast("B", (4, 6))
    assert arrays.span_of(view).nbytes == 24
    assert arrays.span_of(np.zeros((4, 1000), np.uint8)).nbytes == 4000
    assert arrays.span_of(np.zeros((3, 0, 5))).nbytes == 0
    assert arrays.span_of(np.float64(1.5)).nbytes == 8


DTYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "g", "c8", "c16",
          "S7", "U3", "M8[ns]", "m8[s]", "V5", ">i4", [("count", "<i4"), ("On", "f8")]]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_reads_arrays_of_every_dtype_and_layout(dtype):
    plain = np.frombuffer(bytes(range(240)) * 32, np.uint8)
    whole = plain[:24 * np.dtype(dtype).itemsize].view(dtype).reshape(4, 6)
    layouts = [whole, whole.T, whole[::2], whole[:, 1::2], whole[::-1], np.asfortranarray(whole),
               whole[1:1], whole.reshape(2, 2, 6).transpose(2, 0, 1), whole[2, 3:4].reshape(())]
    for layout in layouts:
        span = arrays.source(layout)
        assert bytes_at(span) == layout.tobytes()
        assert arrays.span_of(layout).contiguous == layout.flags.c_contiguous


def test_copies_only_what_lies_apart():
    whole = np.arange(64, dtype=np.int16).reshape(8, 8)
    assert arrays.source(whole).pointer == whole.ctypes.data
    assert arrays.source(whole[2:5]).pointer == whole[2:5].ctypes.data
    assert arrays.source(whole[:, 3]).pointer != whole[:, 3].ctypes.data


def test_refuses_destinations_that_would_lose_the_data():
    frozen = np.zeros(4)
    frozen.flags.writeable = False
    for read_only in (b"hello", frozen, memoryview(b"hello")):
        with pytest.raises(ValueError, match="read-only.*pass a bytearray, or a writable copy"):
            arrays.destination(read_only)
    for apart in (np.zeros((4, 4))[:, 1], np.zeros((3, 5)).T, np.broadcast_to(np.zeros(3), (2, 3))):
        with pytest.raises(ValueError, match="read-only|not contiguous.*assign it from there"):
            arrays.destination(apart)
    assert arrays.destination(np.zeros((4, 4))[1]).nbytes == 32


@pytest.mark.parametrize("obj", [3, "text", None, [1, 2], object()], ids=repr)
def test_says_what_it_takes_when_an_object_is_no_memory(obj):
    with pytest.raises(TypeError, match="%s has no memory.*numpy.*DLPack" % type(obj).__name__):
        arrays.span_of(obj)


def test_refuses_arrays_of_python_objects():
    for held in (np.array([object()]), np.zeros(2, [("a", "O"), ("b", "i4")])):
        with pytest.raises(TypeError, match="Python objects"):
            arrays.span_of(held)


class OnlyDlpack:
    """An array that speaks nothing but DLPack, of the old kind."""

    def __init__(self, inner):
        self.inner = inner

    def __dlpack__(self, stream=None):
        return self.inner.__dlpack__(stream=stream)

    def __dlpack_device__(self):
        return self.inner.__dlpack_device__()


def test_reads_dlpack_of_any_layout_and_keeps_its_memory_alive():
    inner = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    span = arrays.span_of(OnlyDlpack(inner))
    assert (span.pointer, span.device, span.contiguous) == (inner.ctypes.data, "cpu", True)
    assert bytes_at(arrays.source(OnlyDlpack(inner.transpose(2, 0, 1)))) == (
        inner.transpose(2, 0, 1).tobytes())
    kept = arrays.span_of(OnlyDlpack(np.full(100000, 7.0)))
    np.zeros(100000)  # would take the place of freed memory
    assert bytes_at(kept) == np.full(100000, 7.0).tobytes()


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", Tensor)]


class NewDlpack:
    """An array that speaks DLPack 1.0, on a device of choice."""

    def __init__(self, device=(1, 0), flags=0, major=1):
        self.memory = ctypes.create_string_buffer(b"..hello!", 8)
        self.shape = (ctypes.c_int64 * 2)(2, 3)
        tensor = Tensor(ctypes.addressof(self.memory), *device, 2, 1, 8, 1, self.shape, None, 2)
        self.managed = Versioned(major, 0, None, None, flags, tensor)
        self.device = device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream=None, max_version=None):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        assert max_version[0] >= 1
        return new(ctypes.addressof(self.managed), b"dltensor_versioned", None)


def test_reads_dlpack_with_versions():
    source = NewDlpack()
    span = arrays.destination(source)
    assert bytes_at(span) == b"hello!"
    with pytest.raises(ValueError, match="read-only"):
        arrays.destination(NewDlpack(flags=1))
    assert arrays.span_of(NewDlpack(device=(2, 3))).device == "cuda:3"
    assert arrays.span_of(NewDlpack(device=(10, 0))).device == "hip:0"
    with pytest.raises(ValueError, match="device type 15"):
        arrays.span_of(NewDlpack(device=(15, 0)))
    with pytest.raises(TypeError, match="version 2 is not known"):
        arrays.span_of(NewDlpack(major=2))


class OnlyCuda:
    __cuda_array_interface__ = {"data": (0x7f0000000000, False), "shape": (2, 3), "version": 3,
                                "typestr": "<f4", "strides": None}


def test_reads_the_cuda_array_interface():
    span = arrays.span_of(OnlyCuda())
    assert (span.pointer, span.nbytes, span.device) == (0x7f0000000000, 24, "cuda")
    assert span.writable and span.contiguous
    strided = OnlyCuda()
    strided.__cuda_array_interface__ = dict(OnlyCuda.__cuda_array_interface__, strides=(4, 8))
    with pytest.raises(ValueError, match="on cuda is not contiguous: pass a contiguous copy"):
        arrays.source(strided)


def test_reads_torch_tensors_of_every_dtype_and_layout():
    torch = pytest.importorskip("torch")
    for dtype in (torch.bfloat16, torch.float16, torch.float32, torch.float64, torch.int8,
                  torch.uint8, torch.int64, torch.bool, torch.complex64):
        whole = torch.arange(24).reshape(4, 6).to(dtype)
        for layout in (whole, whole.t(), whole[::2], whole[:, 2], whole[1:1], whole[0, 0]):
            wanted = bytes(layout.contiguous().reshape(-1).view(torch.uint8).tolist()
                           if layout.numel() else [])
            assert bytes_at(arrays.source(layout)) == wanted
    span = arrays.destination(torch.zeros(5, dtype=torch.bfloat16, requires_grad=True))
    assert (span.nbytes, span.device) == (10, "cpu")
    with pytest.raises(ValueError, match="not contiguous"):
        arrays.destination(torch.zeros(3, 4).t())


def test_refuses_tensors_whose_memory_is_not_what_they_show():
    torch = pytest.importorskip("torch")
    with pytest.raises(ValueError, match="resolve_conj"):
        arrays.span_of(torch.zeros(3, dtype=torch.complex64).conj())
    with pytest.raises(ValueError, match="sparse_coo has no single memory"):
        arrays.span_of(torch.zeros(3, 3).to_sparse())
