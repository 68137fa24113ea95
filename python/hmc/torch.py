"""The "hmc" backend of torch.distributed: import this module before init_process_group("hmc").

Tensors of the host are moved and reduced by hmc/collective.h, send and recv by notes and gets of a
Node. The ranks find each other through the store that torch hands to every backend.
"""

from __future__ import annotations

import inspect
from datetime import timedelta

try:
    import torch
    import torch.distributed as dist

    if not dist.is_available():
        raise ImportError("this torch is built without torch.distributed")
except ImportError as _missing:
    raise ImportError("hmc.torch is a backend of torch.distributed, which cannot be imported: %s"
                      % _missing) from None

from .torch_meeting import meet
from .torch_messages import Messages
from .torch_tensors import Reduction, Targets, apart, nbytes, overlap, same_size, source, splits
from .torch_work import Kept, Turn, Turns, Work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, List, Optional, Sequence, Tuple

__all__ = ["ProcessGroup"]

# Where an operation's options say nothing, the group's timeout counts.
_UNSET = timedelta(0)


class ProcessGroup(dist.ProcessGroup):  # type: ignore[misc]
    """One rank of a group. torch.distributed calls it; programs do not need to.

    Every method returns a Work. Collectives run in the order in which they were started.
    """

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        self._rank = rank
        self._size = size
        met = meet(store, rank, size, timeout)
        self._core = met.core
        self._turns = Turns(timeout.total_seconds())
        self._kept = Kept()
        self._messages = Messages(met, rank, timeout.total_seconds(), self._kept)

    def __del__(self) -> None:
        if hasattr(self, "_messages"):
            self._turns.close()
            self._messages.close()

    def getBackendName(self) -> str:
        return "hmc"

    # A ProcessGroup of torch 2 asks its backends for its name, and a Python one has none.

    def _set_group_name(self, name: str) -> None:
        self._name = name

    @property
    def group_name(self) -> str:
        return self._name

    def _set_group_desc(self, description: str) -> None:
        self._description = description

    @property
    def group_desc(self) -> str:
        return self._description

    def _start(self, name: str, opts: Any, run: Callable[[float], None],
               result: Sequence[Any]) -> Work:
        timeout = getattr(opts, "timeout", _UNSET)
        return Turn(self._turns, name, run, timeout, list(result), self._kept)

    # The result of all ranks' tensors.

    def allreduce(self, tensors: List[Any], opts: Any = None) -> Work:
        targets = Targets()
        memory = [targets.add(tensor) for tensor in tensors]
        op = getattr(opts, "reduceOp", dist.ReduceOp.SUM)
        reductions = [Reduction(op, tensor.dtype) for tensor in memory]

        def run(timeout: float) -> None:
            for tensor, reduction in zip(memory, reductions):
                self._core.allreduce(tensor.data_ptr(), reduction.count(tensor), reduction.type,
                                     reduction.op, timeout)
                reduction.finish(tensor, self._size)
            targets.store()

        return self._start("all_reduce", opts, run, tensors)

    allreduce_coalesced = allreduce

    def reduce(self, tensors: List[Any], opts: Any) -> Work:
        if self._rank == opts.rootRank:
            return self.allreduce(tensors, opts)
        return self.allreduce([source(tensor).clone() for tensor in tensors], opts)

    def _reduce_scatter_base(self, output: Any, data: Any, opts: Any = None) -> Work:
        targets = Targets()
        received, sent = targets.add(output), source(data)
        if nbytes(sent) != nbytes(received) * self._size:
            raise ValueError("reduce_scatter: %d bytes to receive, so %d ranks must send %d, not %d"
                             % (nbytes(received), self._size, nbytes(received) * self._size,
                                nbytes(sent)))
        parts = list(sent.reshape(-1).chunk(self._size))
        return self._reduce_parts(output, received, parts, targets, opts)

    def reduce_scatter(self, outputs: List[Any], inputs: List[List[Any]], opts: Any = None) -> Work:
        targets = Targets()
        self._check_count("reduce_scatter", inputs[0])
        received = targets.add(outputs[0])
        parts = [source(tensor) for tensor in inputs[0]]
        for part in parts:
            same_size("reduce_scatter", part, received)
        return self._reduce_parts(outputs[0], received, parts, targets, opts)

    def _reduce_parts(self, output: Any, received: Any, parts: List[Any], targets: Targets,
                      opts: Any) -> Work:
        if received.data_ptr() != parts[self._rank].data_ptr():
            parts = apart(parts, [received])
        reduction = Reduction(getattr(opts, "reduceOp", dist.ReduceOp.SUM), received.dtype)

        def run(timeout: float) -> None:
            self._core.reduce_scatter([part.data_ptr() for part in parts], received.data_ptr(),
                                      reduction.count(received), reduction.type, reduction.op,
                                      timeout)
            reduction.finish(received, self._size)
            targets.store()

        return self._start("reduce_scatter", opts, run, [output])

    # Bytes of one rank or of all for one rank or all.

    def broadcast(self, tensors: List[Any], opts: Any) -> Work:
        root = opts.rootRank
        targets = Targets()
        memory = [source(one) if self._rank == root else targets.add(one) for one in tensors]

        def run(timeout: float) -> None:
            for tensor in memory:
                self._core.broadcast(tensor.data_ptr(), nbytes(tensor), root, timeout)
            targets.store()

        return self._start("broadcast", opts, run, tensors)

    def _exchange(self, name: str, opts: Any, parts: Sequence[Any], targets: Targets,
                  result: Sequence[Any]) -> Work:
        """parts[r] is (tensor for rank r, tensor for what comes from it)."""
        mine = parts[self._rank]
        if mine[0] is not None:
            same_size(name + " of our own part", *mine)

        def run(timeout: float) -> None:
            places: List[Tuple[int, int, int, int]] = []
            for sent, received in parts:
                places.append((*_place(sent), *_place(received)))
            self._core.exchange(places, timeout)
            targets.store()

        return self._start(name, opts, run, result)

    def allgather(self, outputs: List[List[Any]], inputs: List[Any], opts: Any = None) -> Work:
        targets = Targets()
        received = [targets.add(tensor) for tensor in outputs[0]]
        self._check_count("all_gather", received)
        sent = source(inputs[0])
        if any(overlap(sent, one) for one in received):
            sent = sent.clone()
        return self._exchange("all_gather", opts, [(sent, one) for one in received], targets,
                              outputs[0])

    def _allgather_base(self, output: Any, data: Any, opts: Any = None) -> Work:
        targets = Targets()
        received, sent = targets.add(output), source(data)
        if nbytes(received) != nbytes(sent) * self._size:
            raise ValueError("all_gather: %d bytes to send, so %d ranks receive %d, not %d"
                             % (nbytes(sent), self._size, nbytes(sent) * self._size,
                                nbytes(received)))
        if sent.data_ptr() != received.data_ptr() + nbytes(sent) * self._rank:
            sent, = apart([sent], [received])

        def run(timeout: float) -> None:
            self._core.allgather(sent.data_ptr(), received.data_ptr(), nbytes(sent), timeout)
            targets.store()

        return self._start("all_gather", opts, run, [output])

    def gather(self, outputs: List[List[Any]], inputs: List[Any], opts: Any) -> Work:
        targets = Targets()
        sent = source(inputs[0])
        parts: List[Any] = [(None, None)] * self._size
        if self._rank == opts.rootRank:
            received = [targets.add(tensor) for tensor in outputs[0]]
            self._check_count("gather", received)
            sent, = apart([sent], received)
            parts = [(None, one) for one in received]
            parts[self._rank] = (sent, received[self._rank])
        else:
            parts[opts.rootRank] = (sent, None)
        return self._exchange("gather", opts, parts, targets, outputs[0] if outputs else [])

    def scatter(self, outputs: List[Any], inputs: List[List[Any]], opts: Any) -> Work:
        targets = Targets()
        received = targets.add(outputs[0])
        parts: List[Any] = [(None, None)] * self._size
        if self._rank == opts.rootRank:
            self._check_count("scatter", inputs[0])
            sent = apart([source(tensor) for tensor in inputs[0]], [received])
            parts = [(one, None) for one in sent]
            parts[self._rank] = (sent[self._rank], received)
        else:
            parts[opts.rootRank] = (None, received)
        return self._exchange("scatter", opts, parts, targets, outputs)

    def alltoall(self, outputs: List[Any], inputs: List[Any], opts: Any = None) -> Work:
        targets = Targets()
        self._check_count("all_to_all", outputs)
        self._check_count("all_to_all", inputs)
        received = [targets.add(tensor) for tensor in outputs]
        sent = apart([source(tensor) for tensor in inputs], received)
        return self._exchange("all_to_all", opts, list(zip(sent, received)), targets, outputs)

    def alltoall_base(self, output: Any, data: Any, output_sizes: Sequence[int],
                      input_sizes: Sequence[int], opts: Any = None) -> Work:
        targets = Targets()
        received = targets.add(output)
        sent, = apart([source(data)], [received])
        parts = list(zip(splits(sent, input_sizes, self._size),
                         splits(received, output_sizes, self._size)))
        return self._exchange("all_to_all_single", opts, parts, targets, [output])

    def barrier(self, opts: Any = None) -> Work:
        return self._start("barrier", opts, self._core.barrier, [])

    # Between two ranks.

    def send(self, tensors: List[Any], rank: int, tag: int) -> Work:
        return self._messages.send(tensors[0], rank, tag)

    def recv(self, tensors: List[Any], rank: int, tag: int) -> Work:
        return self._messages.receive(tensors[0], rank, tag)

    def recv_anysource(self, tensors: List[Any], tag: int) -> Work:
        return self._messages.receive(tensors[0], None, tag)

    def _check_count(self, name: str, tensors: Sequence[Any]) -> None:
        if len(tensors) != self._size:
            raise ValueError("%s: %d tensors for %d ranks" % (name, len(tensors), self._size))

    # Their names since torch 2.10.
    all_gather_single = _allgather_base
    reduce_scatter_single = _reduce_scatter_base
    all_to_all_single = alltoall_base


def _place(tensor: Optional[Any]) -> Tuple[int, int]:
    return (0, 0) if tensor is None else (tensor.data_ptr(), nbytes(tensor))


def _register() -> None:
    register = dist.Backend.register_backend
    # Newer versions ask for the devices, and warn without them.
    named = {"devices": ["cpu"]} if "devices" in inspect.signature(register).parameters else {}
    register("hmc", ProcessGroup, **named)


_register()
