"""A session's buffer, and copies between it and array-like objects."""

from __future__ import annotations

from . import _core, arrays
from .enums import MemoryType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Optional
    # Anything with the buffer protocol, DLPack or __cuda_array_interface__, or a torch tensor.
    _Array = Any

_DEVICES = (None, "cpu", "cuda", "ptr")


def memory_type_of(span: arrays.Span) -> MemoryType:
    """The MemoryType of what hmc.arrays found."""
    return MemoryType[_core.DEVICE_KINDS[span.device.split(":")[0]]]


def memory_type_from_torch_tensor(t: Any, *, default: Optional[MemoryType] = None) -> MemoryType:
    """The MemoryType of a torch tensor's device.

    For a device that HMC does not know: `default`, or a ValueError if there is none.
    """
    if not arrays.is_tensor(t):
        raise TypeError("%s is not a torch tensor" % type(t).__name__)
    try:
        return memory_type_of(arrays.span_of(t))
    except ValueError:
        if default is None:
            raise
        return default


class IOBuffer:
    """Memory that peers read and write, addressed by offset.

    `put` copies an object into it and `get_into` copies out of it. Objects are bytes, bytearrays,
    memoryviews, numpy arrays, torch tensors on any device, and anything else with the buffer
    protocol, DLPack or `__cuda_array_interface__`.

    ptr        its address, an integer
    size       its length in bytes
    mem_type   the kind of memory, never DEFAULT
    device_id  the device that has it
    """

    def __init__(self, core: _core.ConnBuffer) -> None:
        self.core = core
        self.ptr = core.ptr
        self.size = core.buffer_size
        self.mem_type = core.mem_type
        self.device_id = core.device_id

    @classmethod
    def create(cls, device_id: int = 0, buffer_size: int = 128 * 1024 * 1024,
               mem_type: MemoryType = MemoryType.DEFAULT) -> IOBuffer:
        """Allocate a buffer of that many bytes on a device."""
        return cls(_core.ConnBuffer(device_id, buffer_size, mem_type))

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return "<hmc.IOBuffer of %d bytes, %s>" % (self.size, self.mem_type.name)

    def view(self, offset: int = 0, nbytes: Optional[int] = None) -> memoryview:
        """The bytes themselves as a writable memoryview, without a copy. Host memory only."""
        whole = self.core.view()
        end = len(whole) if nbytes is None else offset + nbytes
        if not 0 <= offset <= end <= len(whole):
            raise IndexError("bytes %d to %d are not within the %d of this buffer"
                             % (offset, end, len(whole)))
        return whole[offset:end]

    def put(self, data: _Array, *, nbytes: Optional[int] = None, offset: int = 0,
            device: Optional[str] = None) -> int:
        """Copy `data` into the buffer at `offset`; return the number of bytes copied.

        `nbytes` limits the copy to the first bytes of `data`. `device` says where the data lies:
        "cpu", "cuda" (any accelerator), or "ptr" when `data` is an address, which needs `nbytes`.
        Without it the object is asked.
        """
        return _copy(self.core.write, arrays.source, data, nbytes, offset, device, "the data has")

    def get_into(self, dst: _Array, *, nbytes: Optional[int] = None, offset: int = 0,
                 device: Optional[str] = None) -> int:
        """Copy bytes of the buffer at `offset` into `dst`; return how many.

        Without `nbytes`, as many as `dst` holds. `device` is as for put().
        """
        return _copy(self.core.read, arrays.destination, dst, nbytes, offset, device,
                     "the destination has room for")

    def buffer_put_cpu(self, src: _Array, *, nbytes: Optional[int] = None, offset: int = 0) -> int:
        """put() from host memory."""
        return self.put(src, nbytes=nbytes, offset=offset, device="cpu")

    def buffer_get_cpu_into(self, dst: _Array, *, nbytes: Optional[int] = None,
                            offset: int = 0) -> int:
        """get_into() for host memory."""
        return self.get_into(dst, nbytes=nbytes, offset=offset, device="cpu")

    def buffer_get_cpu(self, *, nbytes: int, offset: int = 0) -> bytearray:
        """`nbytes` of the buffer at `offset`, as a new bytearray."""
        if offset > self.size or nbytes > self.size - offset:
            self.core.read(0, nbytes, offset, True)  # raises, before we allocate nbytes
        data = bytearray(nbytes)
        self.get_into(data, offset=offset, device="cpu")
        return data

    def buffer_put_cuda(self, t: _Array, *, nbytes: Optional[int] = None, offset: int = 0) -> int:
        """put() from an accelerator's memory."""
        return self.put(t, nbytes=nbytes, offset=offset, device="cuda")

    def buffer_get_cuda(self, t: _Array, *, nbytes: Optional[int] = None, offset: int = 0) -> int:
        """get_into() for an accelerator's memory."""
        return self.get_into(t, nbytes=nbytes, offset=offset, device="cuda")

    def buffer_put_gpu_ptr(self, src_ptr: int, *, nbytes: int, offset: int = 0) -> int:
        """put() from an address on any device."""
        return self.put(src_ptr, nbytes=nbytes, offset=offset, device="ptr")

    def buffer_get_gpu_ptr(self, dst_ptr: int, *, nbytes: int, offset: int = 0) -> int:
        """get_into() for an address on any device."""
        return self.get_into(dst_ptr, nbytes=nbytes, offset=offset, device="ptr")

    def buffer_copy_within(self, *, dst_offset: int, src_offset: int, nbytes: int) -> None:
        """Copy from one offset of the buffer to another; the two ranges may overlap."""
        self.core.copy_within(dst_offset, src_offset, nbytes)


def _copy(copy: Callable[[int, int, int, bool], None], described: Callable[[_Array], arrays.Span],
          obj: _Array, nbytes: Optional[int], offset: int, device: Optional[str],
          has: str) -> int:
    """Check the object, then call a copy of the core; return the number of bytes."""
    if device == "ptr":
        size = _check_address(obj, nbytes)
        copy(obj, size, offset, False)
        return size
    if device not in _DEVICES:
        raise ValueError("device is %r: it must be None, \"cpu\", \"cuda\" or \"ptr\"" % (device,))
    if isinstance(obj, int):
        raise TypeError("%r is a number: pass device=\"ptr\" and nbytes if it is an address" % obj)
    span = described(obj)
    if device == "cpu" and not span.on_host or device == "cuda" and span.on_host:
        raise ValueError("device=\"%s\", but the memory is on %s" % (device, span.device))
    size = span.nbytes if nbytes is None else nbytes
    if not 0 <= size <= span.nbytes:
        raise ValueError("nbytes is %d, but %s %d bytes" % (size, has, span.nbytes))
    arrays.settle(span, obj)
    copy(span.pointer, size, offset, span.on_host)
    return size


def _check_address(address: object, nbytes: Optional[int]) -> int:
    if not isinstance(address, int):
        raise TypeError("an address is an integer such as tensor.data_ptr(), not %s"
                        % type(address).__name__)
    if nbytes is None:
        raise ValueError("nbytes is missing: an address does not say how many bytes are there")
    return nbytes
