"""mf_adapter.TransferEngine with torch tensors of two processes; tools/gpu_check.sh runs this.

HMC_TEST_DEVICE=cpu runs what needs no stream without a GPU.
"""

import pytest

import mf_adapter
import mf_smem
from owner import DEVICE, torch
from peers import Child, free_port

SIZE = 64 << 20

PEER = """
import sys, torch, mf_adapter
tensor = torch.zeros(int(sys.argv[2]), dtype=torch.uint8, device=sys.argv[3])
engine = mf_adapter.TransferEngine()
assert engine.initialize(sys.argv[1], "decode:1", "Decode", 0) == 0, mf_adapter.get_last_err_msg()
assert engine.register_memory(tensor.data_ptr(), tensor.nbytes) == 0, mf_adapter.get_last_err_msg()
print(tensor.data_ptr())
for line in sys.stdin:
    print(eval(line))
"""


def said():
    return mf_adapter.get_last_err_msg()


@pytest.fixture(scope="module")
def pair():
    """An engine here, the process of another, and where the tensor of that one lies."""
    url = "tcp://127.0.0.1:%d" % free_port()
    assert mf_adapter.create_config_store(url) == 0, said()
    engine = mf_adapter.TransferEngine()
    assert engine.initialize(url, "prefill:1", "Prefill", 0) == 0, said()
    with Child(PEER, url, SIZE, DEVICE) as child:
        yield engine, child, int(child.answer())
    engine.destroy()
    mf_smem.uninitialize()


def test_tensors_are_written_and_read_in_pieces(pair):
    engine, child, theirs = pair
    tensor = torch.randint(0, 256, (SIZE,), dtype=torch.uint8, device=DEVICE)
    back = torch.zeros_like(tensor)
    assert engine.batch_register_memory([tensor.data_ptr(), back.data_ptr()], [SIZE] * 2) == 0
    piece = 16 << 10
    offsets = list(range(0, SIZE, piece))
    mirrored = [theirs + offset for offset in reversed(offsets)]
    if DEVICE != "cpu":
        torch.cuda.synchronize()
    assert engine.batch_transfer_sync_write("decode:1", [tensor.data_ptr() + n for n in offsets],
                                            mirrored, [piece] * len(offsets)) == 0, said()
    assert child.ask("tensor.sum(dtype=torch.int64).item()") == str(
        tensor.sum(dtype=torch.int64).item())
    assert engine.batch_transfer_sync_read("decode:1", [back.data_ptr() + n for n in offsets],
                                           mirrored, [piece] * len(offsets)) == 0, said()
    assert torch.equal(back, tensor)
    for one in (tensor, back):
        assert engine.unregister_memory(one.data_ptr()) == 0, said()


@pytest.mark.skipif(DEVICE == "cpu", reason="the CPU has no streams")
def test_submitted_transfers_keep_the_order_of_a_stream(pair):
    engine, child, theirs = pair
    tensor = torch.zeros(SIZE, dtype=torch.uint8, device=DEVICE)
    assert engine.register_memory(tensor.data_ptr(), SIZE) == 0, said()
    for stream in (torch.cuda.Stream(), torch.cuda.default_stream()):
        with torch.cuda.stream(stream):
            torch.cuda._sleep(50_000_000)
            tensor.fill_(7)
            assert engine.transfer_async_write_submit("decode:1", tensor.data_ptr(), theirs, SIZE,
                                                      stream.cuda_stream) == 0, said()
            tensor.fill_(9)
        stream.synchronize()
        assert child.ask("(tensor.unique().tolist(), tensor.zero_() is None)[0]") == "[7]"
        assert tensor.unique().tolist() == [9]
    assert engine.unregister_memory(tensor.data_ptr()) == 0, said()
