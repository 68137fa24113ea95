"""Tensors as the core asks them, on a stand-in for torch whose tensors lie in the host's memory."""

import ctypes
import sys
import types

import pytest

import hmc
from hmc import arrays
from node_peers import pair


class Tensor:
    layout = "torch.strided"
    is_cuda, is_cpu, device = False, True, types.SimpleNamespace(type="cpu", index=None)

    def __init__(self, data, step=1):
        self.memory = data
        self.step = step
        self.shape = (len(data) // step,)

    def is_conj(self):
        return False

    def is_neg(self):
        return False

    def is_contiguous(self):
        return self.step == 1

    def numel(self):
        return self.shape[0]

    def stride(self):
        return (self.step,)

    def element_size(self):
        return 1

    def data_ptr(self):
        return ctypes.addressof(ctypes.c_char.from_buffer(self.memory))


class Conjugate(Tensor):
    def is_conj(self):
        return True


class Negative(Tensor):
    def is_neg(self):
        return True


class Sparse(Tensor):
    layout = "torch.sparse_coo"


class Elsewhere(Tensor):
    is_cpu, device = False, types.SimpleNamespace(type="meta", index=None)


class WithoutStorage(Tensor):
    def data_ptr(self):
        raise RuntimeError("this tensor has no storage")


class Interrupted(Tensor):
    def is_contiguous(self):
        raise KeyboardInterrupt


@pytest.fixture(autouse=True)
def torch(monkeypatch):
    module = types.ModuleType("torch")
    module.Tensor, module.strided = Tensor, Tensor.layout
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


@pytest.fixture(params=["put", "get", "start_put", "start_get", "register"])
def use(request):
    """Hands a tensor to the core."""
    def give(tensor):
        with pair() as (a, b, to_a):
            a.allocate(64, name="pool")
            there = b if request.param == "register" else to_a.open("pool")
            given = getattr(there, request.param)(tensor)
            if isinstance(given, hmc.Transfer):
                given.wait()
    return give


def bytes_at(remote, count):
    data = bytearray(64)
    remote.get(data)
    return bytes(data[:count])


@pytest.fixture
def remote():
    with pair() as (a, _, to_a):
        a.allocate(64, name="pool")
        yield to_a.open("pool")


def forbid_arrays(monkeypatch):
    for name in ("span_of", "source", "destination"):
        monkeypatch.setattr(arrays, name, None)


def test_usual_tensors_are_described_without_code_of_python(use, monkeypatch):
    forbid_arrays(monkeypatch)
    use(Tensor(bytearray(b"tensor")))
    use(type("Parameter", (Tensor,), {})(bytearray(b"parameter")))


def test_bytes_of_tensors_move_both_ways(remote, monkeypatch):
    remote.put(bytearray(b"-" * 64))
    data = Tensor(bytearray(6))
    with monkeypatch.context() as without:
        forbid_arrays(without)
        remote.put(Tensor(bytearray(b"tensor")))
        remote.get(data)
    assert data.memory == b"tensor"
    assert bytes_at(remote, 8) == b"tensor--"


@pytest.mark.parametrize("kind, error, words", [
    (Conjugate, ValueError, r"lazy view \(is_conj\).*resolve_conj"),
    (Negative, ValueError, r"lazy view \(is_neg\)"),
    (Sparse, ValueError, "layout torch.sparse_coo has no single memory: pass its dense parts"),
    (Elsewhere, ValueError, "does not know torch's device"),
    (WithoutStorage, RuntimeError, "^this tensor has no storage$"),
    (Interrupted, KeyboardInterrupt, "")])
def test_unusual_tensors_are_refused_in_the_words_of_arrays(use, kind, error, words):
    with pytest.raises(error, match=words):
        use(kind(bytearray(8)))


def test_tensors_that_lie_apart_are_packed_to_be_sent_and_refused_otherwise(remote):
    apart = Tensor(bytearray(b"t-e-n-s-o-r-"), step=2)
    remote.put(apart)
    assert bytes_at(remote, 6) == b"tensor"
    with pytest.raises(ValueError, match=r"shape \(6,\) and strides \(2,\) is not contiguous"):
        remote.get(apart)
    with pair() as (a, _, _), pytest.raises(hmc.InvalidArgument, match="is not contiguous"):
        a.register(apart)


def test_empty_tensors_move_nothing_and_cannot_be_registered(remote):
    class Empty(Tensor):
        def data_ptr(self):
            return 0
    remote.put(Empty(bytearray()))
    remote.get(Empty(bytearray()))
    with pair() as (a, _, _), pytest.raises(hmc.InvalidArgument, match="is empty"):
        a.register(Empty(bytearray()))


def test_a_tensor_at_the_address_of_one_that_is_gone_is_not_taken_for_it(remote):
    memory = bytearray(b"old")
    remote.put(Tensor(memory))
    memory[:] = b"new"
    shorter = Tensor(memory[:2])
    shorter.data_ptr = Tensor(memory).data_ptr
    remote.put(shorter)
    assert bytes_at(remote, 3) == b"ned"
    remote.put(Tensor(memory))
    assert bytes_at(remote, 3) == b"new"


def test_torch_may_come_late_and_go(remote, torch):
    del torch.Tensor
    for text in (b"while it is imported", b"torch is there", b"gone"):
        remote.put(Tensor(bytearray(text)))
        assert bytes_at(remote, len(text)) == text
        torch.Tensor = Tensor
        if text.startswith(b"torch"):
            del sys.modules["torch"]
