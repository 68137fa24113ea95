"""The C++ classes by their own names, whose methods answer a Status."""

import pickle

import pytest

import hmc
from peers import HERE, free_port

OK = hmc.Status.SUCCESS


def test_enumerations_have_the_documented_values():
    assert hmc.status_t is hmc.Status
    assert [one.name for one in hmc.Status] == [
        "SUCCESS", "ERROR", "UNSUPPORT", "INVALID_CONFIG", "TIMEOUT", "NOT_FOUND"]
    assert [one.name for one in hmc.ConnType][:2] == ["RDMA", "UCX"]
    assert (hmc.CtrlTransport.TCP, hmc.CtrlTransport.UDS) == (0, 1)
    assert hmc.MemoryType.CPU == 1 and hmc.MemoryType.MOORE_GPU == 6
    assert pickle.loads(pickle.dumps(hmc.MemoryType.AMD_GPU)) is hmc.MemoryType.AMD_GPU


def test_memory_allocates_and_copies():
    memory = hmc.Memory(0, hmc.MemoryType.CPU)
    assert (memory.getMemoryType(), memory.getDeviceId(), memory.getInitStatus()) == (
        hmc.MemoryType.CPU, 0, OK)
    status, buffer = memory.allocateBuffer(100)
    assert status is OK and isinstance(buffer, hmc.Buffer) and buffer.size == 100
    memoryview(buffer)[:5] = b"hello"
    _, other = memory.allocatePeerableBuffer(100)
    assert memory.copyDeviceToDevice(other, buffer, 5) is OK
    back = bytearray(5)
    assert memory.copyDeviceToHost(back, other.ptr, 5) is OK and back == b"hello"
    assert memory.copyHostToDevice(other, b"JELLO", 5) is OK
    assert bytes(memoryview(other)[:5]) == b"JELLO"
    with pytest.raises(hmc.OutOfRange, match="200 bytes from an object of 100"):
        memory.copyDeviceToHost(bytearray(300), buffer, 200)
    assert memory.freeBuffer(buffer) is OK
    status, nothing = memory.allocateBuffer(0)
    assert status is hmc.Status.ERROR and nothing is None


def test_a_conn_buffer_answers_statuses():
    buffer = hmc.ConnBuffer(0, 1000, hmc.MemoryType.CPU)
    assert buffer.writeFromCpu(b"hello", 5, bias=3) is OK
    back = bytearray(5)
    assert buffer.readToCpu(back, 5, 3) is OK and back == b"hello"
    assert buffer.copyWithin(100, 3, 5) is OK
    other = hmc.ConnBuffer(0, 1000, hmc.MemoryType.CPU)
    assert other.writeFromGpu(buffer.ptr, 200) is OK
    assert bytes(other.view()[100:105]) == b"hello"
    assert other.readToGpu(buffer.ptr + 500, 5, 100) is OK
    assert buffer.writeFromCpu(b"x", 1, 1000) is hmc.Status.ERROR
    with pytest.raises(hmc.OutOfRange, match="10 bytes from an object of 5"):
        buffer.writeFromCpu(b"hello", 10)
    with pytest.raises((BufferError, TypeError)):
        buffer.readToCpu(b"hello", 5)


def test_a_communicator_answers_statuses():
    port, ctrl = free_port(), free_port()
    buffers = [hmc.ConnBuffer(0, 4096, hmc.MemoryType.CPU) for _ in range(2)]
    server, client = [hmc.Communicator(buffer, 1) for buffer in buffers]
    kind = hmc.ConnType.AUTO
    assert server.initServer(HERE, port, ctrl, "", kind) is OK
    link = hmc.CtrlLink()
    link.transport, link.ip, link.port = hmc.CtrlTransport.TCP, HERE, ctrl
    assert client.connectTo(0, 1, HERE, port, link, kind) is OK
    buffers[0].writeFromCpu(b"server", 6, 0)
    buffers[1].writeFromCpu(b"client", 6, 0)
    assert client.put(HERE, port, 0, 100, 6, kind) is OK
    assert client.get(HERE, port, 200, 0, 6, kind) is OK
    status, number = client.putNB(HERE, port, 0, 300, 6, kind)
    assert status is OK and client.wait(number) is OK
    status, number = client.getNB(HERE, port, 400, 0, 6, kind)
    assert status is OK and client.wait([number]) is OK
    assert bytes(buffers[0].view()[300:306]) == bytes(buffers[0].view()[100:106]) == b"client"
    assert bytes(buffers[1].view()[200:206]) == bytes(buffers[1].view()[400:406]) == b"server"
    assert client.ctrlSend(0, 77) is OK and server.ctrlRecv(1) == (OK, 77)
    assert client.put(HERE, 1, 0, 0, 8, kind) is hmc.Status.NOT_FOUND
    assert client.put(HERE, port, 0, 0, 8, 9) is hmc.Status.INVALID_CONFIG
    assert client.checkConn(HERE, port, kind) is OK
    assert client.disConnect(HERE, port, kind) is OK
    assert server.closeServer() is OK
    assert hmc.Communicator.udsPathFor("/run", 3) == "/run/hmc_ctrl_rank_3.sock"
