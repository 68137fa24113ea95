"""mf_adapter.TransferEngine: bytes between registered memory of two processes, by address."""

import os
import signal
import subprocess
import sys

import pytest

import mf_adapter
import mf_smem
from peers import PATIENCE, Child, free_port
from places import fake_driver
from plain_memory import Buffer

SIZE = 64 * 1024

# An engine with a registered buffer. Runs the expression of each line and prints its value.
ENGINE = """
import ctypes, sys
import mf_adapter
def buffer(size=65536):
    memory = ctypes.create_string_buffer(size)
    kept.append(memory)
    return ctypes.addressof(memory)
kept = []
engine = mf_adapter.TransferEngine()
assert engine.initialize(sys.argv[1], sys.argv[2], "Decode", 0) == 0, mf_adapter.get_last_err_msg()
memory = buffer()
assert engine.register_memory(memory, 65536) == 0
print(memory)
for line in sys.stdin:
    print(eval(line))
"""


def said():
    return mf_adapter.get_last_err_msg()


@pytest.fixture(scope="module")
def store():
    url = "tcp://127.0.0.1:%d" % free_port()
    assert mf_adapter.create_config_store(url) == 0, said()
    yield url
    mf_smem.uninitialize()


@pytest.fixture
def engine(store):
    made = mf_adapter.TransferEngine()
    assert made.initialize(store, "prefill:1", "Prefill", 0) == 0, said()
    yield made
    made.destroy()


@pytest.fixture
def peer(store):
    """A process with an engine called decode:1, and the address of its registered memory."""
    with Child(ENGINE, store, "decode:1") as child:
        yield child, int(child.answer())
        assert child.finish() == (0, "")


def read_there(child, address, size):
    return eval(child.ask("ctypes.string_at(%d, %d)" % (address, size)))


@pytest.mark.parametrize("registered", [True, False])
def test_writes_and_reads_by_address(engine, peer, registered):
    child, theirs = peer
    mine = Buffer(os.urandom(SIZE))
    if registered:
        assert engine.register_memory(mine.address, SIZE) == 0, said()
    assert engine.transfer_sync_write("decode:1", mine.address, theirs, SIZE) == 0, said()
    assert read_there(child, theirs, SIZE) == mine.content
    back = Buffer(bytes(100))
    assert engine.transfer_sync_read("decode:1", back.address, theirs + 1000, 100) == 0, said()
    assert back.content == mine.content[1000:1100]


def test_batches(engine, peer):
    child, theirs = peer
    mine = Buffer(os.urandom(SIZE))
    assert engine.batch_register_memory([mine.address], [SIZE]) == 0, said()
    order = [3, 1, 2, 0]
    pieces = [mine.address + 4096 * n for n in range(4)]
    places = [theirs + 8192 * n for n in order]
    assert engine.batch_transfer_sync_write("decode:1", pieces, places, [4096] * 4) == 0, said()
    for n, place in enumerate(places):
        assert read_there(child, place, 4096) == mine.content[4096 * n : 4096 * n + 4096]
    back = Buffer(bytes(4 * 4096))
    targets = [back.address + 4096 * n for n in range(4)]
    assert engine.batch_transfer_sync_read("decode:1", targets, places, [4096] * 4) == 0, said()
    assert back.content == mine.content[: 4 * 4096]
    with pytest.raises(ValueError, match="2 buffers, 1 peer_buffers and 1 lengths"):
        engine.batch_transfer_sync_write("decode:1", pieces[:2], places[:1], [4096])


def test_submitted_transfers_of_host_memory_are_done_at_once(engine, peer):
    child, theirs = peer
    mine, back = Buffer(os.urandom(8192)), Buffer(bytes(8192))
    assert engine.transfer_async_write_submit("decode:1", mine.address, theirs, 4096, 0) == 0
    assert engine.batch_transfer_async_write_submit(
        "decode:1", [mine.address + 4096], [theirs + 4096], [4096], 0) == 0, said()
    assert engine.transfer_async_read_submit("decode:1", back.address, theirs, 4096, 0) == 0
    assert engine.batch_transfer_async_read_submit(
        "decode:1", [back.address + 4096], [theirs + 4096], [4096], 0) == 0, said()
    assert back.content == mine.content == read_there(child, theirs, 8192)


def test_memory_is_reached_from_registering_to_taking_back(engine, peer):
    child, _ = peer
    mine = Buffer(b"x" * 100)
    new = int(child.ask("buffer(3 * 4096)"))
    assert engine.transfer_sync_write("decode:1", mine.address, new, 100) == -2007
    assert "decode:1 has no registered memory at {:#x}".format(new) in said()
    # Exactly those bytes, not the pages around them.
    assert child.ask("engine.register_memory(%d, 4096)" % (new + 4096)) == "0"
    assert engine.transfer_sync_write("decode:1", mine.address, new + 4096, 100) == 0, said()
    assert engine.transfer_sync_write("decode:1", mine.address, new + 8192 - 99, 100) == -2007
    assert engine.transfer_sync_write("decode:1", mine.address, new + 4095, 100) == -2007
    # Memory that adjoins is one to others.
    assert child.ask("engine.register_memory(%d, 4096)" % (new + 8192)) == "0"
    assert engine.transfer_sync_write("decode:1", mine.address, new + 8192 - 50, 100) == 0, said()
    assert read_there(child, new + 8192 - 50, 100) == mine.content
    assert child.ask("engine.unregister_memory(%d)" % (new + 4096)) == "0"
    assert engine.transfer_sync_write("decode:1", mine.address, new + 4096, 100) == -2007
    assert engine.transfer_sync_read("decode:1", mine.address, new + 4096, 100) == -2007
    assert child.ask("engine.unregister_memory(%d)" % (new + 4096)) == "-2007"
    # And again, with another size.
    assert child.ask("engine.register_memory(%d, 50)" % (new + 4096)) == "0"
    assert engine.transfer_sync_write("decode:1", mine.address, new + 4096, 50) == 0, said()
    assert engine.transfer_sync_write("decode:1", mine.address, new + 4096, 51) == -2007


def test_both_sides_write(engine, peer):
    child, theirs = peer
    mine = Buffer(bytes(16))
    assert engine.register_memory(mine.address, 16) == 0
    assert child.ask("engine.transfer_sync_write('prefill:1', memory, %d, 16) or "
                     "mf_adapter.get_last_err_msg()" % mine.address) == ""
    assert child.ask("ctypes.memset(memory, 7, 16) and None") == "None"
    assert child.ask("engine.transfer_sync_write('prefill:1', memory, %d, 16)" %
                     mine.address) == "0"
    assert mine.content == bytes([7]) * 16
    assert engine.transfer_sync_read("decode:1", mine.address, theirs, 8) == 0, said()


def test_a_process_that_was_killed_and_comes_back_with_its_id(engine, store):
    mine = Buffer(os.urandom(100))
    with Child(ENGINE, store, "decode:2") as first:
        theirs = int(first.answer())
        assert engine.transfer_sync_write("decode:2", mine.address, theirs, 100) == 0, said()
        first.send(signal.SIGKILL)
        first.ends()
        assert engine.transfer_sync_write("decode:2", mine.address, theirs, 100) < 0
    with Child(ENGINE, store, "decode:2") as second:
        theirs = int(second.answer())
        assert engine.transfer_sync_write("decode:2", mine.address, theirs, 100) == 0, said()
        assert read_there(second, theirs, 100) == mine.content


def test_failures_have_sentences(engine, store):
    buffer = Buffer(bytes(8))
    assert engine.transfer_sync_write("nobody:1", buffer.address, 4096, 8) == -2007
    assert "no engine nobody:1" in said()
    assert engine.register_memory(0, 8) == -2000
    assert engine.register_memory(buffer.address, 0) == -2000
    assert engine.register_memory(buffer.address, 8) == 0
    assert engine.register_memory(buffer.address, 8) == 0
    assert engine.register_memory(buffer.address, 4) == -2006
    assert "registered with 8 bytes, not 4" in said()
    assert engine.transfer_sync_write("decode:1", buffer.address, 0, 8) == -2000
    assert engine.batch_transfer_sync_write("decode:1", [], [], []) == -2000
    other = mf_adapter.TransferEngine()
    assert other.initialize(store, "prefill:1", "Prefill", 0) == -1
    assert "another engine has the id prefill:1" in said()
    assert other.initialize(store, "a/b", "Prefill", 0) == -1
    assert other.initialize(store, "other:1", "Encode", 0) == -2000
    assert "role 0" in said()
    assert other.transfer_sync_write("prefill:1", buffer.address, buffer.address, 8) == -2000


def test_several_engines_in_one_process(engine, store):
    source, target = Buffer(b"from one to the other"), Buffer(bytes(21))
    other = mf_adapter.TransferEngine()
    session = "127.0.0.1:%d" % other.get_rpc_port()
    assert 15000 <= int(session.split(":")[1]) <= 25000
    assert other.initialize(store, session, "Both", -1) == 0, said()
    assert other.register_memory(target.address, 21) == 0
    assert engine.transfer_sync_write(session, source.address, target.address, 21) == 0, said()
    assert target.content == source.content
    other.unInitialize()
    assert other.register_memory(target.address, 21) == -2000
    assert engine.transfer_sync_write(session, source.address, target.address, 21) < 0


# Two engines of one process and memory on the device of each. `stream` waits until it is let go.
STREAM = """
import ctypes, sys
import mf_adapter

SIZE = 1 << 20
driver = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    code = getattr(driver, name)(*arguments)
    assert code == 0, (name, code)


def made(function, *arguments):
    pointer = ctypes.c_void_p()
    call(function, ctypes.byref(pointer), *arguments)
    return pointer.value


def fill(pointer, letter):
    call("cuMemsetD8Async", ctypes.c_uint64(pointer), ctypes.c_ubyte(ord(letter)),
         ctypes.c_size_t(SIZE), ctypes.c_void_p(stream))


def engine(name):
    one = mf_adapter.TransferEngine()
    assert one.initialize(sys.argv[1], name, "Both", 0) == 0, mf_adapter.get_last_err_msg()
    memory = made("cuMemAlloc_v2", ctypes.c_size_t(SIZE))
    assert one.register_memory(memory, SIZE) == 0, mf_adapter.get_last_err_msg()
    return one, memory


call("cuInit", 0)
call("cuCtxPushCurrent_v2", ctypes.c_void_p(made("cuDevicePrimaryCtxRetain", 0)))
(a, mine), (b, theirs) = engine("a:1"), engine("b:1")
stream = made("cuStreamCreateWithPriority", 1, 0)
word = made("cuMemHostAlloc", ctypes.c_size_t(4), 0)
call("cuStreamWaitValue32_v2", ctypes.c_void_p(stream), ctypes.c_uint64(word), ctypes.c_uint32(1),
     0)
seen = made("cuMemHostAlloc", ctypes.c_size_t(SIZE), 0)
"""

IN_ORDER = """
fill(mine, "k")
assert a.transfer_async_write_submit("b:1", mine, theirs, SIZE, stream) == 0
fill(mine, "l")
half = SIZE // 2
assert a.batch_transfer_async_read_submit("b:1", [mine + half, mine], [theirs + half, theirs],
                                          [half, half], stream) == 0
call("cuMemcpyAsync", ctypes.c_void_p(seen), ctypes.c_uint64(mine), ctypes.c_size_t(SIZE),
     ctypes.c_void_p(stream))
ctypes.c_uint32.from_address(word).value = 1
call("cuCtxSynchronize")
print(set(ctypes.string_at(seen, SIZE)) == {ord("k")})
"""


def test_submitted_transfers_of_device_memory_keep_the_order_of_their_stream(store):
    with Child(STREAM + IN_ORDER, store, LD_LIBRARY_PATH=fake_driver()) as child:
        assert child.answer() == "True"
        assert child.finish() == (0, "")


def test_a_store_of_its_own():
    url = "tcp://127.0.0.1:%d" % free_port()
    command = [sys.executable, "-m", "mf_adapter.launch_ascend_mf_store"]
    environment = dict(os.environ, ASCEND_MF_STORE_URL=url, ASCEND_MF_LOG_LEVEL="3")
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout.readline() == "serving the store at {}\n".format(url)
            with Child(ENGINE, url, "alone:1") as child:
                int(child.answer())
                assert child.finish() == (0, "")
            again = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True,
                                   timeout=PATIENCE)
            assert again.returncode == 1 and url.split("//")[1] in again.stderr
            server.terminate()
            assert server.wait(PATIENCE) == 0
        finally:
            server.kill()
    del environment["ASCEND_MF_STORE_URL"]
    without = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True,
                             timeout=PATIENCE)
    assert without.returncode == 1 and "ASCEND_MF_STORE_URL is not set" in without.stderr
