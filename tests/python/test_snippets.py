"""Programs as the documentation's readers write them, in every call shape that it has."""

from peers import Child, need
from places import cuda_environment, place  # noqa: F401 (a fixture)

SERVER = """
import sys
import hmc
session = hmc.create_session(device_id=0, buffer_size=16 << 20, mem_type=hmc.MemoryType.CPU,
                             num_chs=1, local_ip="192.168.2.244")
session.init_server(bind_ip="192.168.2.244", ucx_port=2025, rdma_port=2026, ctrl_tcp_port=5001,
                    self_id=0, ctrl_uds_dir="/tmp")
print("listening")
assert session.ctrl_recv(peer=1) == 17
word = bytearray(6)
session.buf.get_into(word, nbytes=6, offset=32)
print(word.decode())
sys.stdin.read()
"""
CLIENT = """
import hmc
peer = "192.168.2.244"
session = hmc.create_session(mem_type=hmc.MemoryType.CPU, local_ip="192.168.2.248",
                             buffer_size=16 << 20)
session.connect(peer_id=0, self_id=1, peer_ip=peer, data_port=2025, ctrl_tcp_port=5001,
                conn=hmc.ConnType.UCX)
count = session.buf.put(b"word 1", offset=64)
session.put_remote(peer, 2025, local_off=64, remote_off=32, nbytes=count, conn=hmc.ConnType.UCX)
session.ctrl_send(peer=0, tag=17)
again = session.put_nb(peer, 2025, 64, 100, count, conn=hmc.ConnType.UCX)
back = session.get_nb(peer, 2025, 200, 32, count, conn=hmc.ConnType.UCX)
session.wait([again, back])
assert session.buf.buffer_get_cpu(nbytes=6, offset=200) == b"word 1"
"""
ARRAYS = """
import numpy
import torch
for sent, received in ((numpy.linspace(0, 1, 300), numpy.empty(300)),
                       (torch.arange(500), torch.empty(500, dtype=torch.int64))):
    n = session.buf.put(sent, offset=0)
    session.put_remote(peer, 2025, local_off=0, remote_off=0, nbytes=n, conn=hmc.ConnType.UCX)
    session.get_remote(peer, 2025, local_off=0, remote_off=0, nbytes=n, conn=hmc.ConnType.UCX)
    session.buf.get_into(received, nbytes=n, offset=0)
    assert (sent == received).all()
"""
ON_CUDA = """
import torch
sent = torch.randn(1024 * 1024, device="cuda")
n = session.buf.put(sent, offset=0, device="cuda")
session.put_remote(peer, 2026, local_off=0, remote_off=0, nbytes=n, conn=hmc.ConnType.RDMA)
session.buf.put(bytes(n), offset=0)
received = torch.empty_like(sent)
session.get_remote(peer, 2026, local_off=0, remote_off=0, nbytes=n, conn=hmc.ConnType.RDMA)
session.buf.get_into(received, nbytes=n, offset=0, device="cuda")
"""
FIRST_SERVER = """
import sys
import hmc
session = hmc.create_session(mem_type=hmc.MemoryType.CPU, buffer_size=4 << 20)
session.init_server("192.168.2.244", 2025, conn=hmc.ConnType.UCX)
print("listening")
"""
READS = """
got = bytearray(100000)
session.get_into("192.168.2.248", got, conn=hmc.ConnType.UCX)
print("read", len(got))
"""
FIRST_CLIENT = """
import hmc
peer = "192.168.2.244"
session = hmc.create_session(mem_type=hmc.MemoryType.%s, buffer_size=4 << 20)
session.connect(peer, 2025, conn=hmc.ConnType.%s)
"""
FIRST_TRANSFERS = """
import numpy
session.put(peer, b"first words", bias=4096, conn=hmc.ConnType.UCX)
assert session.get(peer, 11, bias=4096) == session.get(11, peer, bias=4096) == b"first words"
sent, received = numpy.arange(100.0), numpy.empty(100)
session.put(peer, sent, conn=hmc.ConnType.UCX)
session.get_into(peer, received, conn=hmc.ConnType.UCX)
assert (sent == received).all()
session.disconnect(peer, hmc.ConnType.UCX)
"""
FIRST_ON_CUDA = """
import torch
sent = torch.randn(1024 * 1024, device="cuda")
session.put_torch_cuda(peer, sent, conn=hmc.ConnType.RDMA)
received = torch.empty_like(sent)
session.get_torch_cuda(peer, received, conn=hmc.ConnType.RDMA)
"""
# The stand-in for torch has no other way to compare.
SAME = "assert received.tobytes() == sent.tobytes()\n"


def run(place, server, client, **environment):
    with Child(place.adapt(server), prefix=place.server_prefix, **environment) as serving:
        assert serving.answer() == "listening"
        with Child(place.adapt(client), prefix=place.client_prefix, **environment) as calling:
            status, _ = calling.finish()
            assert status == 0, calling.errors + serving.errors
        status, lines = serving.finish()
        assert status == 0, serving.errors
        return lines.splitlines()


def test_second_generation(place):  # noqa: F811
    assert run(place, SERVER, CLIENT) == ["word 1"]


def test_second_generation_with_arrays(place):  # noqa: F811
    need("numpy")
    need("torch")
    assert run(place, SERVER, CLIENT + ARRAYS) == ["word 1"]


def test_second_generation_on_cuda(place):  # noqa: F811
    assert run(place, SERVER, CLIENT + ON_CUDA + SAME, **cuda_environment()) == ["word 1"]


def test_first_generation_server_that_reads_its_client(place):  # noqa: F811
    client = FIRST_CLIENT % ("CPU", "UCX") + "session.put(peer, b'hello', conn=hmc.ConnType.UCX)\n"
    assert run(place, FIRST_SERVER + READS, client) == ["read 100000"]


def test_first_generation(place):  # noqa: F811
    need("numpy")
    run(place, FIRST_SERVER + "sys.stdin.read()\n", FIRST_CLIENT % ("CPU", "UCX") + FIRST_TRANSFERS)


def test_first_generation_on_cuda(place):  # noqa: F811
    run(place, FIRST_SERVER + "sys.stdin.read()\n",
        FIRST_CLIENT % ("DEFAULT", "RDMA") + FIRST_ON_CUDA + SAME, **cuda_environment())
