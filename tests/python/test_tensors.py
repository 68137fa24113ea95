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


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class Exchange(ctypes.Structure):
    """The functions that torch has had at its class since 2.10 (DLPack 1.3)."""

    describe_type = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("older", ctypes.c_void_p),
                ("unused", ctypes.c_void_p * 3), ("describe", describe_type), ("current_stream", ctypes.c_void_p)]


def exchange(code=1, answer=0, major=1, device_type=1):
    """Such functions, for tensors of bytes; asked how often."""
    def describe(tensor, out):
        made.asked += 1
        tensor.numbers = (ctypes.c_int64 * 2)(tensor.shape[0], tensor.step)
        shape = ctypes.cast(tensor.numbers, ctypes.POINTER(ctypes.c_int64))
        strides = ctypes.cast(ctypes.addressof(tensor.numbers) + 8, ctypes.POINTER(ctypes.c_int64))
        out[0] = DLTensor(Tensor.data_ptr(tensor) - 4, device_type, 0, 1, code, 8, 1, shape, strides, 4)
        return answer
    made = types.SimpleNamespace(asked=0)
    made.functions = Exchange(major, 3, None, (ctypes.c_void_p * 3)(), Exchange.describe_type(describe), None)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    made.capsule = new(ctypes.addressof(made.functions), b"dlpack_exchange_api", None)
    return made


@pytest.fixture
def quick(torch):
    """Gives torch's class such functions."""
    def give(**options):
        made = exchange(**options)
        torch.Tensor = type("Quick", (Tensor,), {"__dlpack_c_exchange_api__": made.capsule})
        return made, torch.Tensor
    return give


def test_functions_of_torchs_are_asked_instead_of_methods(remote, quick, monkeypatch):
    made, kind = quick()
    for method in ("is_contiguous", "numel", "element_size", "data_ptr", "is_conj", "is_neg"):
        setattr(kind, method, None)
    memory = bytearray(7)
    with monkeypatch.context() as patch:
        forbid_arrays(patch)
        remote.put(kind(bytearray(b"quickly")))
        remote.get(kind(memory))
    assert memory == b"quickly"
    assert made.asked == 2


@pytest.mark.parametrize("options", [{"answer": -1}, {"major": 2}, {"device_type": 13}])
def test_methods_are_asked_where_the_functions_do_not_help(options, remote, quick, monkeypatch):
    _, kind = quick(**options)
    with monkeypatch.context() as patch:
        forbid_arrays(patch)
        remote.put(kind(bytearray(b"slowly")))
    assert bytes_at(remote, 6) == b"slowly"


@pytest.mark.parametrize("code, refused", [(1, False), (2, True), (5, True)])
@pytest.mark.parametrize("question", ["is_conj", "is_neg"])
def test_values_that_memory_does_not_hold_are_refused(question, code, refused, remote, quick):
    _, kind = quick(code=code)
    setattr(kind, question, lambda self: True)
    if refused:
        with pytest.raises(ValueError, match="resolve_"):
            remote.put(kind(bytearray(b"view")))
    else:
        remote.put(kind(bytearray(b"view")))
        assert bytes_at(remote, 4) == b"view"


def test_elements_that_lie_apart_are_not_taken_for_dense_ones(remote, quick):
    _, kind = quick()
    remote.put(kind(bytearray(b"a.b.c."), step=2))
    assert bytes_at(remote, 3) == b"abc"
