"""The buffer of a session, and copies in and out of it."""

from . import _core, arrays
from .enums import MemoryType

_BY_KIND = {"cpu": MemoryType.CPU, "cuda": MemoryType.NVIDIA_GPU, "hip": MemoryType.AMD_GPU,
            "cnrt": MemoryType.CAMBRICON_MLU, "acl": MemoryType.HUAWEI_ASCEND_NPU,
            "musa": MemoryType.MOORE_GPU}

_DEVICES = (None, "cpu", "cuda", "ptr")


def memory_type_of(span):
    """The MemoryType of what hmc.arrays found."""
    return _BY_KIND[span.device.split(":")[0]]


def memory_type_from_torch_tensor(t, *, default=None):
    """The MemoryType of the device that a torch tensor lies on.

    What HMC does not know is `default`, or a ValueError without one.
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
    """Memory that peers read from and write to, addressed by offset.

    `put` copies an object into it and `get_into` copies out of it. Objects are bytes, bytearrays,
    memoryviews, numpy arrays, torch tensors on any device, and whatever speaks the buffer protocol,
    DLPack or `__cuda_array_interface__`.
    """

    def __init__(self, core):
        self.core = core

    @classmethod
    def create(cls, device_id=0, buffer_size=128 * 1024 * 1024, mem_type=MemoryType.DEFAULT):
        """A buffer of that many bytes on a device."""
        return cls(_core.ConnBuffer(device_id, buffer_size, mem_type))

    @property
    def ptr(self):
        """Its address, as an integer."""
        return self.core.ptr

    @property
    def mem_type(self):
        """Where it lies: never DEFAULT, but what that stood for."""
        return self.core.mem_type

    @property
    def device_id(self):
        return self.core.device_id

    @property
    def size(self):
        """Its bytes."""
        return self.core.buffer_size

    def __len__(self):
        return self.core.buffer_size

    def __repr__(self):
        return "<hmc.IOBuffer of %d bytes, %s>" % (self.size, self.mem_type.name)

    def view(self, offset=0, nbytes=None):
        """The bytes themselves, as a writable memoryview: no copy. Host memory only."""
        whole = self.core.view()
        end = len(whole) if nbytes is None else offset + nbytes
        if not 0 <= offset <= end <= len(whole):
            raise IndexError("bytes %d to %d are not within the %d of this buffer"
                             % (offset, end, len(whole)))
        return whole[offset:end]

    def put(self, data, *, nbytes=None, offset=0, device=None):
        """Copies `data` into the buffer at `offset` and returns how many bytes that were.

        `nbytes` takes only that many of them. `device` says where the data lies and is found out
        without: "cpu", "cuda" (any accelerator), or "ptr" for an address with `nbytes`.
        """
        if device == "ptr":
            return self._put_address(data, nbytes, offset)
        _check_device(data, device)
        span = arrays.source(data)
        _check_side(span, device, "the data")
        size = _size(nbytes, span, "the data has")
        arrays.settle(span, data)
        self.core.write(span.pointer, size, offset, span.on_host)
        return size

    def get_into(self, dst, *, nbytes=None, offset=0, device=None):
        """Copies `nbytes` of the buffer at `offset` into `dst` (all that fit, without `nbytes`).

        `device` is as for put(). Returns how many bytes that were.
        """
        if device == "ptr":
            return self._get_address(dst, nbytes, offset)
        _check_device(dst, device)
        span = arrays.destination(dst)
        _check_side(span, device, "the destination")
        size = _size(nbytes, span, "the destination has room for")
        arrays.settle(span, dst)
        self.core.read(span.pointer, size, offset, span.on_host)
        return size

    def buffer_put_cpu(self, src, *, nbytes=None, offset=0):
        """put() from host memory."""
        return self.put(src, nbytes=nbytes, offset=offset, device="cpu")

    def buffer_get_cpu_into(self, dst, *, nbytes=None, offset=0):
        """get_into() for host memory."""
        return self.get_into(dst, nbytes=nbytes, offset=offset, device="cpu")

    def buffer_get_cpu(self, *, nbytes, offset=0):
        """`nbytes` of the buffer at `offset`, as a new bytearray."""
        if offset > self.size or nbytes > self.size - offset:
            self.core.read(0, nbytes, offset, True)  # says what is wrong before memory is taken
        data = bytearray(nbytes)
        self.get_into(data, offset=offset, device="cpu")
        return data

    def buffer_put_cuda(self, t, *, nbytes=None, offset=0):
        """put() from memory of an accelerator."""
        return self.put(t, nbytes=nbytes, offset=offset, device="cuda")

    def buffer_get_cuda(self, t, *, nbytes=None, offset=0):
        """get_into() for memory of an accelerator."""
        return self.get_into(t, nbytes=nbytes, offset=offset, device="cuda")

    def buffer_put_gpu_ptr(self, src_ptr, *, nbytes, offset=0):
        """put() from an address on any device."""
        return self._put_address(src_ptr, nbytes, offset)

    def buffer_get_gpu_ptr(self, dst_ptr, *, nbytes, offset=0):
        """get_into() for an address on any device."""
        return self._get_address(dst_ptr, nbytes, offset)

    def buffer_copy_within(self, *, dst_offset, src_offset, nbytes):
        """Copies from one place of the buffer to another; the two may overlap."""
        self.core.copy_within(dst_offset, src_offset, nbytes)

    def _put_address(self, address, nbytes, offset):
        self.core.write(_address(address, nbytes), nbytes, offset, False)
        return nbytes

    def _get_address(self, address, nbytes, offset):
        self.core.read(_address(address, nbytes), nbytes, offset, False)
        return nbytes


def _address(address, nbytes):
    if not isinstance(address, int):
        raise TypeError("an address is an integer such as tensor.data_ptr(), not %s"
                        % type(address).__name__)
    if nbytes is None:
        raise ValueError("nbytes is missing: an address does not say how many bytes are there")
    return address


def _check_device(obj, device):
    if device not in _DEVICES:
        raise ValueError("device is %r: it must be None, \"cpu\", \"cuda\" or \"ptr\"" % (device,))
    if isinstance(obj, int):
        raise TypeError("%r is a number: pass device=\"ptr\" and nbytes if it is an address" % obj)


def _check_side(span, device, what):
    if device == "cpu" and not span.on_host or device == "cuda" and span.on_host:
        raise ValueError("device=\"%s\", but %s is on %s" % (device, what, span.device))


def _size(nbytes, span, has):
    if nbytes is None:
        return span.nbytes
    if not 0 <= nbytes <= span.nbytes:
        raise ValueError("nbytes is %d, but %s %d bytes" % (nbytes, has, span.nbytes))
    return nbytes
