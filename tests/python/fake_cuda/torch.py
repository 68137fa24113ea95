"""As much of torch as programs with CUDA tensors need, on the fake accelerator of the tests."""

import os

import hmc

_memory = hmc.Memory(0, hmc.MemoryType.NVIDIA_GPU)
synchronised = []


class device:
    type = "cuda"
    index = 0


class _Stream:
    def synchronize(self):
        synchronised.append(self)


class cuda:
    @staticmethod
    def current_stream(_):
        return _Stream()


class Tensor:
    """Of 32-bit numbers."""

    device = device
    layout = "torch.strided"

    def __init__(self, count):
        self.shape = (count,)
        status, self._buffer = _memory.allocateBuffer(4 * count)
        assert status == hmc.Status.SUCCESS

    def data_ptr(self):
        return self._buffer.ptr

    def element_size(self):
        return 4

    def numel(self):
        return self.shape[0]

    def stride(self):
        return (1,)

    def tobytes(self):
        data = bytearray(4 * self.numel())
        assert _memory.copyDeviceToHost(data, self._buffer, len(data)) == hmc.Status.SUCCESS
        return bytes(data)


def randn(count, device):
    assert device == "cuda"
    tensor = Tensor(count)
    data = os.urandom(4 * count)
    assert _memory.copyHostToDevice(tensor._buffer, data, len(data)) == hmc.Status.SUCCESS
    return tensor


def empty_like(tensor):
    return Tensor(tensor.numel())
