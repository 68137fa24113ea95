"""A tensor goes to another process and comes back doubled.

    python torch_tensors.py            # one side, which starts the other
    python torch_tensors.py ADDRESS    # the other side

The receiver registers the tensor itself, so the bytes are copied once, into place.
"""

import subprocess
import sys

import torch

import hmc

SHAPE = (256, 1024)
DEVICE = "cuda" if hmc.memory_supported() == hmc.MemoryType.NVIDIA_GPU else "cpu"


def doubler():
    work = torch.zeros(SHAPE, dtype=torch.bfloat16, device=DEVICE)
    with hmc.Node(listen="tcp://127.0.0.1:0") as node:
        node.register(work, name="work")
        other = subprocess.Popen([sys.executable, __file__, node.address])
        note = node.next_note(timeout=120)  # the tensor is there
        work *= 2
        if DEVICE == "cuda":
            torch.cuda.synchronize()  # a note must not overtake the kernel
        note.peer.notify(b"doubled")
        assert other.wait(timeout=120) == 0


def asker(address):
    torch.manual_seed(1)
    tensor = torch.randn(SHAPE, device=DEVICE).to(torch.bfloat16)
    answer = torch.empty_like(tensor)
    with hmc.Node() as node:
        peer = node.connect(address)
        work = peer.open("work")
        work.put(tensor)
        peer.notify(b"double it")
        node.next_note(timeout=120)
        work.get(answer)
        assert torch.equal(answer, tensor * 2)
        print("a {} tensor of {} bytes went there and back by {}".format(
            tensor.dtype, tensor.numel() * tensor.element_size(), work.path), flush=True)


if __name__ == "__main__":
    asker(sys.argv[1]) if len(sys.argv) > 1 else doubler()
