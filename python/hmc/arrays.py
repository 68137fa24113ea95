"""The memory of an object: where it lies, how long it is, and whether it may be written.

Neither numpy nor torch is imported. Objects are asked through the protocols that they have, in this
order: torch's own methods (any device, any dtype), the buffer protocol, `__array_interface__`,
`__cuda_array_interface__` and DLPack.
"""

from __future__ import annotations

import sys

from . import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, Optional, Set, Tuple

# The core's names for kinds of devices, where torch has another, and by DLPack's numbers.
_TORCH_KINDS = {"mlu": "cnrt", "npu": "acl"}
_TORCH_NAMES = {"cnrt": "mlu", "acl": "npu", "hip": "cuda"}
_DLPACK_KINDS = {1: "cpu", 2: "cuda", 3: "cpu", 10: "hip", 11: "cpu", 13: "cuda"}

# torch's layouts that are one memory and our names for its devices, once seen: a small put takes
# less time than naming them.
_DENSE_LAYOUTS: Set[object] = set()
_DEVICE_NAMES: Dict[Tuple[str, Optional[int]], str] = {}

# What the stream objects of torch, of its relatives and of CuPy call their handle, and CUDA's name
# for the default stream, whose handle is 0 there. For the core 0 is no stream.
_HANDLES = ("cuda_stream", "musa_stream", "npu_stream", "mlu_stream", "ptr")
_DEFAULT_STREAM = 1


class Span:
    """A piece of memory and its owner, which keeps it alive.

    `device` is "cpu" or a kind and an index such as "cuda:1"; a kind alone if the object does not
    know its index. `contiguous` means dense, in C order. `stream` is the handle of the stream that
    the object says its work is on, 0 if it says nothing.
    """

    __slots__ = ("pointer", "nbytes", "device", "writable", "contiguous", "owner",
                 "shape", "strides", "itemsize", "stream")

    def __init__(self, pointer: int, shape: Iterable[int], strides: Optional[Iterable[int]],
                 itemsize: int, device: str, writable: bool, owner: Any,
                 stream: int = 0) -> None:
        self.pointer = pointer
        self.shape = tuple(shape)
        self.itemsize = itemsize
        self.strides = _dense_strides(self.shape, itemsize) if strides is None else tuple(strides)
        self.contiguous = True
        self.nbytes = itemsize
        for length, stride in zip(reversed(self.shape), reversed(self.strides)):
            if length != 1 and stride != self.nbytes:
                self.contiguous = False
            self.nbytes *= length
        self.contiguous = self.contiguous or self.nbytes == 0
        self.device = device
        self.writable = writable
        self.owner = owner
        self.stream = stream

    @property
    def on_host(self) -> bool:
        return self.device == "cpu"

    def __repr__(self) -> str:
        return "<hmc.arrays.Span of %d bytes at %#x on %s%s%s>" % (
            self.nbytes, self.pointer, self.device, "" if self.writable else ", read-only",
            "" if self.contiguous else ", not contiguous")


def span_of(obj: Any) -> Span:
    """The memory of any array-like object, without a copy. TypeError if it has none."""
    if is_tensor(obj):
        return _of_tensor(obj)
    found = _of_buffer(obj)
    for name, device in (("__array_interface__", "cpu"), ("__cuda_array_interface__", "cuda")):
        if found is None and hasattr(obj, name):
            found = _of_interface(obj, getattr(obj, name), device)
    if found is None and hasattr(obj, "__dlpack__"):
        found = _of_dlpack(obj)
    if found is None:
        raise TypeError(
            "%s has no memory to move: pass bytes, bytearray, memoryview, a numpy array, a torch tensor, or "
            "an object with the buffer protocol, DLPack or __cuda_array_interface__" % _kind(obj))
    return found


def source(obj: Any) -> Span:
    """The memory of an object to read from. One that is not contiguous is copied first."""
    span = span_of(obj)
    if span.contiguous:
        return span
    if span.on_host:
        copy = _core.packed(span.pointer, span.shape, span.strides, span.itemsize, span.nbytes)
        return _of_view(memoryview(copy))
    if is_tensor(obj):
        return span_of(obj.contiguous())
    raise ValueError("this %s on %s is not contiguous: pass a contiguous copy of it"
                     % (_kind(obj), span.device))


def destination(obj: Any) -> Span:
    """The memory of an object to write into. ValueError if it is read-only or not contiguous."""
    span = span_of(obj)
    if not span.writable:
        raise ValueError("this %s is read-only and cannot receive data: pass a bytearray, or a "
                         "writable copy" % _kind(obj))
    if not span.contiguous:
        raise ValueError("this %s of shape %s and strides %s is not contiguous and cannot receive "
                         "data: receive into a contiguous one and assign it from there"
                         % (_kind(obj), span.shape, span.strides))
    return span


def settle(span: Span, obj: Any) -> None:
    """Wait for the work that torch has queued on the current stream of this memory's device."""
    torch = sys.modules.get("torch")
    if span.on_host or torch is None or not is_tensor(obj):
        return
    streams: Any = getattr(torch, obj.device.type, None)
    if hasattr(streams, "current_stream"):
        streams.current_stream(obj.device).synchronize()


def stream_of(span: Span, obj: Any) -> int:
    """The stream that work on this object's memory is queued on, 0 if none is known."""
    return stream_on(span.device) if is_tensor(obj) else span.stream


def stream_on(device: str) -> int:
    """torch's current stream of a device such as "cuda:1", 0 if torch does not use such devices."""
    kind, _, index = device.partition(":")
    torch: Any = sys.modules.get("torch")
    streams: Any = getattr(torch, _TORCH_NAMES.get(kind, kind), None)
    if not hasattr(streams, "current_stream") or not streams.is_initialized():
        return 0
    if streams is getattr(torch, "cuda", None) and index:
        # What torch's compiler calls: no object of Python is made for the stream.
        handle = getattr(getattr(torch, "_C", None), "_cuda_getCurrentRawStream", None)
        if handle:
            return handle(int(index)) or _DEFAULT_STREAM
    return stream_handle(streams.current_stream(int(index) if index else None))


def stream_handle(stream: Any) -> int:
    """The handle of a stream that the caller named, by it or by an object that has one."""
    for name in _HANDLES:
        stream = getattr(stream, name, stream)
    if not isinstance(stream, int) or stream < 0:
        raise TypeError("%r is no stream: pass its handle, or a stream of torch or CuPy" % (stream,))
    return stream or _DEFAULT_STREAM


def _kind(obj: object) -> str:
    module = type(obj).__module__
    name = type(obj).__qualname__
    return name if module == "builtins" else module + "." + name


def _dense_strides(shape: Tuple[int, ...], itemsize: int) -> Tuple[int, ...]:
    strides = []
    step = itemsize
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))


def is_tensor(obj: Any) -> bool:
    return hasattr(obj, "data_ptr") and hasattr(obj, "element_size") and hasattr(obj, "device")


def _of_tensor(tensor: Any) -> Span:
    """torch's own methods know more than its protocols: every dtype and every vendor's device."""
    for odd in ("is_conj", "is_neg"):
        if getattr(tensor, odd, bool)():
            raise ValueError("this tensor is a lazy view (%s), whose memory holds other values: "
                             "pass the result of resolve_conj() or resolve_neg()" % odd)
    layout = getattr(tensor, "layout", "strided")
    if layout not in _DENSE_LAYOUTS:
        if "strided" not in str(layout):
            raise ValueError("a tensor of layout %s has no single memory: pass its dense parts"
                             % layout)
        _DENSE_LAYOUTS.add(layout)
    itemsize = tensor.element_size()
    strides = [step * itemsize for step in tensor.stride()]
    return Span(tensor.data_ptr(), tensor.shape, strides, itemsize, _tensor_device(tensor.device),
                True, tensor)


def _tensor_device(device: Any) -> str:
    key = device.type, device.index
    name = _DEVICE_NAMES.get(key)
    if name is None:
        name = _DEVICE_NAMES[key] = _name_of(device)
    return name


def _name_of(device: Any) -> str:
    kind = _TORCH_KINDS.get(device.type, device.type)
    if kind not in _core.DEVICE_KINDS:
        raise ValueError("HMC does not know torch's device %s" % device)
    if kind == "cpu":
        return kind
    torch = sys.modules.get("torch")
    if kind == "cuda" and getattr(getattr(torch, "version", None), "hip", None):
        kind = "hip"
    return kind if device.index is None else "%s:%d" % (kind, device.index)


def _of_buffer(obj: Any) -> Optional[Span]:
    try:
        view = memoryview(obj)
    except (TypeError, ValueError, BufferError):
        return None  # no buffer, or a dtype that the protocol cannot name
    if view.suboffsets:  # not one piece of memory: read a copy, which cannot be written
        view = memoryview(view.tobytes())
    if "O" in "".join(view.format.split(":")[::2]):  # without the names of fields
        raise TypeError("this %s holds Python objects, not bytes" % _kind(obj))
    return _of_view(view)


def _of_view(view: memoryview) -> Span:
    return Span(_core.address_of(view), view.shape or (), view.strides, view.itemsize, "cpu",
                not view.readonly, view)


def _of_interface(obj: Any, interface: Dict[str, Any], device: str) -> Optional[Span]:
    if interface.get("data") is None:
        return None
    pointer, read_only = interface["data"]
    typestr = interface["typestr"]
    if typestr[1] == "O":
        raise TypeError("this %s holds Python objects, not bytes" % _kind(obj))
    # numpy counts the characters of unicode strings, which have four bytes.
    itemsize = int(typestr[2:].split("[")[0]) * (4 if typestr[1] == "U" else 1)
    return Span(pointer or 0, interface["shape"], interface.get("strides"), itemsize, device,
                not read_only, obj, interface.get("stream") or 0)


def _of_dlpack(obj: Any) -> Optional[Span]:
    number, index = obj.__dlpack_device__()
    kind = _DLPACK_KINDS.get(int(number))
    if kind is None:
        raise ValueError("HMC does not know DLPack's device type %d" % number)
    # A producer for CUDA makes the stream that we name wait for its own.
    stream = {"stream": _DEFAULT_STREAM} if kind == "cuda" else {}
    try:
        capsule = obj.__dlpack__(max_version=(1, 0), **stream)
    except TypeError:  # a producer from before versions
        capsule = obj.__dlpack__(**stream)
    pointer, shape, strides, itemsize, _, _, read_only = _core.read_dlpack(capsule)
    device = kind if kind == "cpu" else "%s:%d" % (kind, index)
    return Span(pointer, shape, strides, itemsize, device, not read_only, capsule,
                stream.get("stream", 0))
