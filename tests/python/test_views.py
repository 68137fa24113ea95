"""What a region is: listed by its peers with dtype and shape, and shown as an array."""

import array
import importlib.util

import numpy as np
import pytest

import hmc
from node_peers import pair
from peers import PATIENCE


@pytest.fixture
def sides():
    with pair() as three:
        yield three


def described(info):
    return info.name, info.nbytes, info.device, info.access, info.dtype, info.shape


def test_peers_list_what_is_registered(sides):
    a, _, to_a = sides
    a.allocate(4096, name="pool")
    a.register(np.zeros((3, 4), np.float32), name="weights", access="r")
    a.register(array.array("d", [1, 2]), name="array")
    a.register(bytearray(5), name="bytes")
    a.register(np.zeros(3, ">i4"), name="other order")
    a.allocate(name="made", dtype="bfloat16", shape=(2, 8))
    a.allocate(64)
    kept = a.register(np.zeros(2), name="not for long")
    a.unregister("not for long")
    del kept
    assert [described(one) for one in to_a.regions(timeout=PATIENCE)] == [
        ("array", 16, "cpu", "rw", "float64", (2,)), ("bytes", 5, "cpu", "rw", "uint8", (5,)),
        ("made", 32, "cpu", "rw", "bfloat16", (2, 8)),
        ("other order", 12, "cpu", "rw", "uint8", (12,)),
        ("pool", 4096, "cpu", "rw", "uint8", (4096,)),
        ("weights", 48, "cpu", "r", "float32", (3, 4))]
    remote = to_a.open("weights")
    assert (remote.dtype, remote.shape, remote[4:].dtype, remote[4:].shape) == (
        "float32", (3, 4), "uint8", (44,))
    assert (a.register(np.zeros((2, 2), "i2")).dtype, a.allocate(7).shape) == ("int16", (7,))


def test_grants_only_means_no_list():
    with hmc.Node(listen="tcp://127.0.0.1:0", grants_only=True) as a, hmc.Node() as b:
        part = a.register(np.zeros(4), name="secret")
        peer = b.connect(a.address)
        with pytest.raises(hmc.PermissionDenied, match="by grants alone"):
            peer.regions(timeout=PATIENCE)
        assert peer.open(part.grant()).dtype == "uint8"


def test_regions_are_arrays(sides):
    a, _, to_a = sides
    ours = a.allocate(name="w", dtype=np.float32, shape=(3, 4)).numpy()
    ours[:] = np.arange(12).reshape(3, 4)
    remote = to_a.open("w")
    theirs = remote.numpy()
    assert (theirs.dtype, theirs.shape) == (np.float32, (3, 4)) and (theirs == ours).all()
    theirs[2, 3] = 100
    assert ours[2, 3] == 100
    assert (np.from_dlpack(remote) == ours).all()
    assert (np.from_dlpack(a.register(ours, name="again")) == ours).all()
    assert remote[4:8].numpy().tobytes() == np.float32(1).tobytes()
    assert np.from_dlpack(remote[:48]).dtype == np.uint8
    region = a.register(np.arange(5.0))
    assert (np.asarray(region).nbytes, region.numpy().sum()) == (40, 10)


def test_views_keep_their_memory():
    with pair() as (a, _, to_a):
        a.allocate(name="w", dtype="int64", shape=1000)
        view = np.from_dlpack(to_a.open("w"))
        ours = np.from_dlpack(a.allocate(dtype="int64", shape=1000))
    assert view.sum() == ours.sum() == 0


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "uint8", "float16", "complex64"])
def test_torch_sees_regions_without_a_copy(sides, dtype):
    import torch

    a, _, to_a = sides
    ours = torch.from_dlpack(a.allocate(name="made", dtype=getattr(torch, dtype), shape=(4, 2)))
    ours[:] = torch.arange(8).reshape(4, 2)
    theirs = torch.from_dlpack(to_a.open("made"))
    assert theirs.dtype == ours.dtype and torch.equal(theirs, ours)
    tensor = torch.zeros(2, 3, dtype=getattr(torch, dtype))
    registered = a.register(tensor, name="tensor")
    torch.from_dlpack(registered)[1, 2] = 5
    assert tensor[1, 2] == 5 and to_a.open("tensor").shape == (2, 3)


def test_what_cannot_be_shown_says_why():
    with pair(["tcp"]) as (a, _, to_a):
        a.allocate(64, name="far")
        remote = to_a.open("far")
        for show in (remote.numpy, remote.__dlpack__, remote.__dlpack_device__):
            with pytest.raises(BufferError, match="\"far\" on cpu is not mapped.*tcp.*get\\(\\) it"):
                show()
        half = a.allocate(dtype="bfloat16", shape=(2,))
        with pytest.raises(hmc.Unsupported, match="bfloat16.*numpy cannot show"):
            half.numpy()
        with pytest.raises(BufferError, match="read-only.*DLPack before"):
            a.register(b"constant", access="r").__dlpack__()
        with pytest.raises(BufferError, match="leave dl_device out"):
            half.__dlpack__(dl_device=(2, 0))
        with pytest.raises(BufferError, match="without a copy"):
            half.__dlpack__(copy=True)
        with pytest.raises(BufferError, match=r"datetime64\[s\], which DLPack does not have"):
            a.register(np.zeros(2, "M8[s]")).__dlpack__()


def test_consumers_that_know_versions_are_told_what_is_read_only():
    with hmc.Node() as node:
        capsule = node.register(b"constant", access="r").__dlpack__(max_version=(1, 0))
        assert "dltensor_versioned" in repr(capsule)
        assert hmc._core.read_dlpack(capsule)[-1] is True
        assert hmc._core.read_dlpack(node.allocate(4).__dlpack__(max_version=(1, 1)))[1:] == (
            (4,), (1,), 1, 1, 0, False)


@pytest.mark.parametrize("arguments, sentence", [
    (dict(), "nbytes is None"), (dict(dtype="float32"), "pass both"),
    (dict(dtype="float99", shape=(2,)), "float99.*it is a number such as"),
    (dict(dtype="int8", shape=(2, -1)), "length of -1"), (dict(dtype="int8", shape="ab"), "'a'"),
    (dict(nbytes=7, dtype="int32", shape=(2,)), "dtype and shape make 8"),
    (dict(dtype="int32", shape=(1 << 62, 1 << 62)), "more bytes than there are")], ids=str)
def test_allocate_says_what_it_needs(arguments, sentence):
    with hmc.Node() as node, pytest.raises((hmc.InvalidArgument, TypeError), match=sentence):
        node.allocate(**arguments)
