"""The memory of torch's tensors, as hmc's collectives take it."""

from __future__ import annotations

import functools

import torch

from . import _core
from .errors import InvalidArgument, Unsupported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Sequence, Tuple

_ReduceOp = torch.distributed.ReduceOp
_NAMES = ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM")
_OPS = {"SUM": "sum", "AVG": "sum", "PRODUCT": "prod", "MIN": "min", "MAX": "max"}
# Of truth values: 1 + 1 would be 2.
_OPS_OF_BOOL = {"SUM": "max", "PRODUCT": "min", "MIN": "min", "MAX": "max"}


def checked(tensor: Any) -> Any:
    """The same tensor for autograd not to see, if its memory is the host's."""
    if tensor.layout != torch.strided:
        raise Unsupported("a tensor of layout %s has no memory that hmc could move: pass "
                          "tensor.to_dense()" % tensor.layout)
    if tensor.device.type != "cpu":
        raise Unsupported("a tensor on %s: the hmc backend of torch.distributed moves tensors of "
                          "the host only. Pass tensor.cpu(), or make a group of another backend "
                          "with new_group(backend=...)" % tensor.device)
    return tensor.detach()


def source(tensor: Any) -> Any:
    """The tensor, or a contiguous copy."""
    return checked(tensor).contiguous()


class Targets:
    """Contiguous tensors for those that an operation writes into."""

    def __init__(self) -> None:
        self._copies: List[Tuple[Any, Any]] = []

    def add(self, tensor: Any) -> Any:
        tensor = checked(tensor)
        if tensor.is_contiguous():
            return tensor
        copy = tensor.contiguous()
        self._copies.append((tensor, copy))
        return copy

    def store(self) -> None:
        for tensor, copy in self._copies:
            tensor.copy_(copy)


def nbytes(tensor: Any) -> int:
    return int(tensor.numel() * tensor.element_size())


def overlap(one: Any, other: Any) -> bool:
    begin, end = one.data_ptr(), one.data_ptr() + nbytes(one)
    return bool(begin < other.data_ptr() + nbytes(other) and other.data_ptr() < end)


def apart(sent: Sequence[Any], received: Sequence[Any]) -> List[Any]:
    """`sent`, with copies of those that are received into, too."""
    return [one.clone() if any(overlap(one, other) for other in received) else one for one in sent]


def same_size(what: str, one: Any, other: Any) -> None:
    if nbytes(one) != nbytes(other):
        raise InvalidArgument("%s: %d bytes to send and %d to receive"
                              % (what, nbytes(one), nbytes(other)))


def splits(tensor: Any, sizes: Sequence[int], ranks: int) -> List[Any]:
    """The tensor's part for each rank, cut along its first dimension."""
    rows = tensor.size(0) if tensor.dim() else 1
    if not sizes:
        if rows % ranks:
            raise InvalidArgument("the first dimension is %d: it must be a multiple of the %d "
                                  "ranks, or pass the split sizes" % (rows, ranks))
        sizes = [rows // ranks] * ranks
    if len(sizes) != ranks or sum(sizes) != rows:
        raise InvalidArgument("split sizes %s for %d ranks and a first dimension of %d: one for "
                              "each rank, and they must add up" % (list(sizes), ranks, rows))
    return list(tensor.split(list(sizes)))


class Reduction:
    """A tensor's numbers and what to do with them, by the names that the core has."""

    def __init__(self, op: Any, dtype: Any) -> None:
        name = next((one for one in _NAMES if op == getattr(_ReduceOp, one)), str(op))
        if name not in _OPS:
            raise Unsupported("hmc reduces by %s, not by %s" % (", ".join(_OPS), name))
        self._average = name == "AVG"
        self.op = _OPS[name]
        self.type = str(dtype).rpartition(".")[2]
        if dtype == torch.bool:
            self.op, self.type = _OPS_OF_BOOL.get(name, ""), "uint8"
        if dtype.is_complex and self.op == "sum":
            self.type = {8: "float32", 16: "float64"}.get(_size_of(dtype), "")
        if not self.op or self.type not in _core.Collective.TYPES or \
                self._average and not (dtype.is_floating_point or dtype.is_complex):
            raise Unsupported("hmc has no %s of %s" % (name, dtype))
        self._ratio = _size_of(dtype) // _size_of(getattr(torch, self.type))

    def count(self, tensor: Any) -> int:
        return int(tensor.numel() * self._ratio)

    def finish(self, tensor: Any, ranks: int) -> None:
        if self._average:
            tensor.div_(ranks)


@functools.lru_cache(maxsize=None)
def _size_of(dtype: Any) -> int:
    return int(torch.empty((), dtype=dtype).element_size())
