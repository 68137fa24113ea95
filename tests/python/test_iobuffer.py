"""Copies between a session's buffer and objects of all kinds."""

import os

import pytest

import hmc


@pytest.fixture
def buf():
    return hmc.IOBuffer.create(0, 64 << 10, hmc.MemoryType.CPU)


def test_knows_what_it_is(buf):
    assert (buf.size, len(buf), buf.device_id) == (65536, 65536, 0)
    assert buf.mem_type is hmc.MemoryType.CPU
    assert buf.ptr == buf.core.ptr != 0
    assert isinstance(buf.core, hmc.ConnBuffer)
    assert hmc.memory_supported() is hmc.MemoryType.CPU


@pytest.mark.parametrize("make", [bytes, bytearray, memoryview], ids=lambda make: make.__name__)
def test_takes_bytes_of_every_kind(buf, make):
    assert buf.put(make(b"hello"), offset=3) == 5
    assert buf.buffer_get_cpu(nbytes=7, offset=2) == b"\0hello\0"
    assert buf.put(make(b"JELLO"), nbytes=1, offset=3) == 1
    assert buf.buffer_get_cpu(nbytes=5, offset=3) == b"Jello"
    assert buf.buffer_put_cpu(make(b"cpu"), offset=9) == 3
    into = bytearray(3)
    assert buf.buffer_get_cpu_into(into, nbytes=2, offset=9) == 2
    assert into == b"cp\0"


def test_takes_all_bytes_of_views_with_several_dimensions(buf):
    data = os.urandom(4000)
    view = memoryview(data).cast("B", (4, 1000))
    assert buf.put(view) == 4000
    assert buf.buffer_get_cpu(nbytes=4000) == data
    back = bytearray(4000)
    assert buf.get_into(memoryview(back).cast("i", (10, 100))) == 4000
    assert back == data
    assert buf.put(view[2:3]) == 1000


def test_moves_arrays_of_every_dtype_and_layout(buf):
    np = pytest.importorskip("numpy")
    for dtype in ("?", "u1", "i2", "<i4", ">i4", "f2", "f8", "c16", "U2", "M8[us]",
                  [("a", "i4"), ("b", "f8")]):
        whole = np.arange(24).astype(dtype).reshape(4, 6)
        for layout in (whole, whole.T, whole[::2], whole[:, ::-1], whole[1:1], whole[2, 3]):
            assert buf.put(layout, offset=16) == layout.nbytes
            back = np.zeros_like(np.ascontiguousarray(layout))
            buf.get_into(back, nbytes=back.nbytes, offset=16)
            assert back.tobytes() == layout.tobytes()
        with pytest.raises(ValueError, match="not contiguous.*assign it from there"):
            buf.get_into(np.zeros((4, 6), dtype)[:, 1])


def test_moves_tensors(buf):
    torch = pytest.importorskip("torch")
    for dtype in (torch.bfloat16, torch.float32, torch.int64, torch.bool):
        tensor = torch.arange(24).reshape(4, 6).to(dtype)
        for layout in (tensor, tensor.t(), tensor[:, 2]):
            assert buf.put(layout) == layout.numel() * layout.element_size()
            back = torch.empty(layout.shape, dtype=dtype)
            buf.get_into(back, nbytes=back.numel() * back.element_size(), offset=0)
            assert torch.equal(back, layout)


def test_moves_by_address(buf):
    source = hmc.IOBuffer.create(0, 4096, hmc.MemoryType.CPU)
    source.put(b"somewhere")
    assert buf.put(source.ptr, nbytes=9, offset=1, device="ptr") == 9
    buf.buffer_put_gpu_ptr(source.ptr, nbytes=4, offset=20)
    assert buf.buffer_get_cpu(nbytes=23, offset=1) == b"somewhere" + bytes(10) + b"some"
    buf.get_into(source.ptr + 100, nbytes=9, offset=1, device="ptr")
    buf.buffer_get_gpu_ptr(source.ptr + 109, nbytes=4, offset=20)
    assert source.buffer_get_cpu(nbytes=13, offset=100) == b"somewheresome"


def test_copies_within_itself(buf):
    buf.put(bytes(range(100)))
    buf.buffer_copy_within(dst_offset=10, src_offset=0, nbytes=90)
    assert buf.buffer_get_cpu(nbytes=100) == bytes(range(10)) + bytes(range(90))


def test_can_be_looked_into_without_a_copy(buf):
    view = buf.view(100, 8)
    buf.put(b"in place", offset=100)
    assert bytes(view) == b"in place"
    view[:2] = b"ON"
    assert buf.buffer_get_cpu(nbytes=8, offset=100) == b"ON place"
    with pytest.raises(IndexError, match="65530 to 65538.*65536"):
        buf.view(65530, 8)
    kept = hmc.IOBuffer.create(0, 4096, hmc.MemoryType.CPU).view()
    assert bytes(kept) == bytes(4096)  # the view keeps its memory


@pytest.mark.parametrize("call, kind, sentence", [
    (lambda b: b.put(b"x" * 10, offset=65530), hmc.OutOfRange,
     "10 bytes at offset 65530 would pass the end of 65536 bytes"),
    (lambda b: b.put(b"x", offset=2**64 - 1), hmc.OutOfRange, "offset 18446744073709551615"),
    (lambda b: b.put(b"x", offset=-1), ValueError, "offset is -1"),
    (lambda b: b.put(b"abc", nbytes=4), ValueError, "nbytes is 4, but the data has 3 bytes"),
    (lambda b: b.get_into(bytearray(3), nbytes=4), ValueError, "has room for 3 bytes"),
    (lambda b: b.get_into(b"abc", nbytes=3), ValueError, "read-only"),
    (lambda b: b.put(12345), TypeError, 'device="ptr" and nbytes'),
    (lambda b: b.put("text"), TypeError, "str has no memory"),
    (lambda b: b.put(b"x", device="gpu"), ValueError, "device is 'gpu'"),
    (lambda b: b.put(b"x", device="cuda"), ValueError, 'device="cuda", but the memory is on cpu'),
    (lambda b: b.put(b"x", nbytes=1, device="ptr"), TypeError, "an address is an integer"),
    (lambda b: b.put(4096, device="ptr"), ValueError, "nbytes is missing"),
    (lambda b: b.buffer_put_gpu_ptr(0, nbytes=8), hmc.HMCError, "null pointer"),
    (lambda b: b.buffer_get_cpu(nbytes=2**40), hmc.OutOfRange, "1099511627776 bytes"),
    (lambda b: b.buffer_copy_within(dst_offset=0, src_offset=65536, nbytes=1), hmc.OutOfRange,
     "1 bytes from offset 65536"),
])
def test_says_what_is_wrong(buf, call, kind, sentence):
    with pytest.raises(kind, match=sentence):
        call(buf)


def test_types_of_tensors():
    torch = pytest.importorskip("torch")
    assert hmc.memory_type_from_torch_tensor(torch.zeros(1)) is hmc.MemoryType.CPU
    with pytest.raises(TypeError, match="list is not a torch tensor"):
        hmc.memory_type_from_torch_tensor([1])
    meta = torch.zeros(1, device="meta")
    assert hmc.memory_type_from_torch_tensor(meta, default=hmc.MemoryType.CPU) is hmc.MemoryType.CPU
    with pytest.raises(ValueError, match="does not know torch's device meta"):
        hmc.memory_type_from_torch_tensor(meta)
