"""Regions as arrays: their dtypes, by numpy's names, and numpy's view of them.

Imported when it is first needed; numpy itself only to make an array of it.
"""

from __future__ import annotations

import sys

from .errors import InvalidArgument, Unsupported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional, Tuple

# By the struct module's codes, in native byte order. What has another size elsewhere is not here.
_OF_CODE = {"b": "int8", "h": "int16", "i": "int32", "q": "int64", "B": "uint8", "H": "uint16",
            "I": "uint32", "Q": "uint64", "e": "float16", "f": "float32", "d": "float64",
            "?": "bool", "l": "int64", "L": "uint64"}


def type_of(obj: Any) -> Optional[Tuple[str, Tuple[int, ...]]]:
    """The dtype and shape of an array-like object; None for bytes and for what has no plain name."""
    dtype = getattr(obj, "dtype", None)
    if dtype is None:
        return _of_buffer(obj)
    name = dtype_name(dtype)
    numpy: Any = sys.modules.get("numpy")
    # Names of numpy's say nothing of the byte order, nor of fields.
    if numpy is not None and isinstance(dtype, numpy.dtype) and not _is_plain(numpy, name, dtype):
        return None
    return name, tuple(int(length) for length in obj.shape)


def wanted(dtype: Any, shape: Any) -> Tuple[str, Tuple[int, ...]]:
    """What `dtype=` and `shape=` say."""
    if dtype is None or shape is None:
        raise InvalidArgument("an array needs dtype= and shape=: pass both")
    try:
        lengths = tuple(shape)
    except TypeError:  # one number
        lengths = (shape,)
    for length in lengths:
        if not hasattr(length, "__index__") or length < 0:
            raise InvalidArgument("the shape has a length of %r: pass integers of 0 or more"
                                  % (length,))
    return dtype_name(dtype), tuple(length.__index__() for length in lengths)


def dtype_name(dtype: Any) -> str:
    """Of a name, or of a dtype of numpy, torch or their kin."""
    if isinstance(dtype, str):
        return dtype
    if isinstance(dtype, type):  # numpy.float32
        return dtype.__name__
    return str(getattr(dtype, "name", dtype)).rpartition(".")[2]  # torch.float32


def as_numpy(memory: memoryview, dtype: str, shape: Tuple[int, ...], title: str) -> Any:
    """An array over that memory."""
    import numpy

    try:
        return numpy.frombuffer(memory, numpy.dtype(dtype)).reshape(shape)
    except (TypeError, ValueError):
        raise Unsupported("%s holds %s of shape %s, which numpy cannot show in %d bytes: try "
                          "torch.from_dlpack, or numpy.asarray(region.data()) for the bytes"
                          % (title, dtype, shape, len(memory))) from None


def _of_buffer(obj: Any) -> Optional[Tuple[str, Tuple[int, ...]]]:
    try:
        view = memoryview(obj)
    except (TypeError, ValueError, BufferError):
        return None
    name = _OF_CODE.get(view.format.lstrip("@"))
    if name in (None, "uint8") and view.ndim == 1:
        return None
    return (name, view.shape or ()) if name else None


def _is_plain(numpy: Any, name: str, dtype: Any) -> bool:
    try:
        return bool(numpy.dtype(name) == dtype)
    except TypeError:  # bfloat16, which is ml_dtypes' and has no other byte order
        return bool(dtype.isnative)
