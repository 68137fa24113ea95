"""A pool of several processes."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import hmc
from peers import PATIENCE, Child, need
from pool_members import SIZE, member, new_store, tell


@pytest.fixture
def store():
    return new_store()


@pytest.fixture
def pool(store):
    """Rank 0 of a pool for four, which serves the store."""
    with hmc.Pool(store, capacity=4, host_size=SIZE, serve_store=True, timeout=PATIENCE,
                  lease=5.0, heartbeat=0.5) as first:
        yield first


def test_a_pool_says_how_it_is_laid_out(pool):
    assert (pool.rank, pool.capacity, pool.ranks) == (0, 4, [0])
    assert pool.stride() == SIZE and pool.stride("device") == 0
    slot = pool.slot(0)
    assert (slot.rank, slot.space, slot.device, slot.mapped) == (0, "host", "cpu", True)
    assert (slot.nbytes, len(slot), slot.address) == (SIZE, SIZE, pool.base())
    assert slot[4096:].address == pool.base() + 4096
    assert repr(slot) == "<hmc.Slot: %d bytes of rank 0's host slot, mapped>" % SIZE
    assert repr(pool) == "<hmc.Pool: rank 0 of 4>"


def test_what_one_member_writes_another_reads(store, pool):
    with member(store) as (second, rank):
        assert rank == 1
        assert tell(second, "np.asarray(pool.slot(1))[:1000] = np.arange(1000) % 251") == "done"
        view = np.asarray(pool.slot(1))
        assert (view[:1000] == np.arange(1000) % 251).all()
        view[1000:2000] = 7
        np.asarray(pool.slot(0))[-4:] = 9
        assert tell(second, "assert (np.asarray(pool.slot(1))[1000:2000] == 7).all()") == "done"
        assert tell(second, "assert bytes(pool.slot(0)[-4:]) == bytes([9] * 4)") == "done"
        assert second.ask("print(pool.slot(0).address, pool.slot(1).address)") == "%d %d" % (
            pool.slot(0).address, pool.slot(1).address)


def test_three_members_copy_to_and_from_each_other(store, pool):
    data = np.random.default_rng(1).integers(0, 256, SIZE, np.uint8)
    with member(store) as (second, _), member(store) as (third, _):
        pool.copy(pool.slot(1), data)
        assert tell(second, "pool.copy(pool.slot(2), pool.slot(1))") == "done"
        back = bytearray(SIZE)
        pool.copy(back, pool.slot(2))
        assert bytes(back) == data.tobytes()
        # By address, between two others, a part.
        pool.copy(pool.slot(1).address, pool.slot(2)[100:200], timeout=PATIENCE)
        pool.copy(pool.base(), pool.slot(1).address, size=100)
        assert bytes(pool.slot(0)[:100]) == data[100:200].tobytes()
        assert tell(third, "pool.copy(pool.slot(0)[50:60], b'0123456789')") == "done"
        assert bytes(memoryview(pool.slot(0))[50:60]) == b"0123456789"


@pytest.mark.parametrize("source", [
    b"12345678", bytearray(b"12345678"), memoryview(b"12345678"),
    np.frombuffer(b"12345678", np.int32), np.frombuffer(b"1.2.3.4.5.6.7.8.", "S1")[::2],
], ids=lambda one: type(one).__name__)
def test_anything_with_memory_is_a_source(pool, source):
    pool.copy(pool.slot(0)[:8], source)
    assert bytes(pool.slot(0)[:8]) == b"12345678"


def test_tensors_are_sources_and_destinations(pool):
    need("torch")
    import torch

    tensor = torch.arange(64, dtype=torch.float32)
    pool.copy(pool.slot(0), tensor)
    back = torch.zeros(64)
    pool.copy(back, pool.slot(0))
    assert torch.equal(back, tensor)
    assert torch.equal(torch.frombuffer(pool.slot(0)[:256], dtype=torch.float32), tensor)


def test_a_batch_has_an_outcome_for_each(store, pool):
    with member(store):
        pieces = [bytes([i]) * 1000 for i in range(50)]
        slot = pool.slot(1)
        transfer = pool.start_copy([(slot[i * 2000:i * 2000 + 1000], piece)
                                    for i, piece in enumerate(pieces)])
        transfer.wait(timeout=PATIENCE)
        assert transfer.done() and transfer.outcomes() == [None] * 50 and len(transfer) == 50
        assert repr(transfer) == "<hmc.PoolTransfer of 50 copies>"
        back = [bytearray(1000) for _ in pieces]
        copies = [(into, slot[i * 2000:i * 2000 + 1000]) for i, into in enumerate(back)]
        pool.start_copy(copies).wait(timeout=PATIENCE)
        assert back == pieces
        mixed = pool.start_copy([(slot, b"first"), (pool.base() + 3 * SIZE, b"nobody"),
                                 [slot[5:], b"third"]])
        with pytest.raises(hmc.NotFound, match="rank 3"):
            mixed.wait(timeout=PATIENCE)
        first, second, third = mixed.outcomes()
        assert first is None and third is None and isinstance(second, hmc.NotFound)
        assert bytes(slot[:10]) == b"firstthird"


def test_rows_are_copied(pool):
    matrix = np.arange(64, dtype=np.uint8).reshape(8, 8)
    pool.copy_2d(pool.slot(0), 100, matrix, 8, 8, 8)
    assert (np.asarray(pool.slot(0))[:800].reshape(8, 100)[:, :8] == matrix).all()
    back = np.zeros((8, 4), np.uint8)
    pool.copy_2d(back, 4, pool.slot(0)[2:], 100, 4, 8)
    assert (back == matrix[:, 2:6]).all()
    pool.copy_2d(back, 4, pool.slot(0), 100, 4, 0)
    with pytest.raises(hmc.InvalidArgument, match="pitch of 3 bytes"):
        pool.copy_2d(back, 3, pool.slot(0), 100, 4, 8)
    with pytest.raises(hmc.OutOfRange, match="32 bytes to copy to"):
        pool.copy_2d(back, 4, pool.slot(0), 100, 4, 9)


def test_a_view_keeps_the_pool_alive_and_outlives_it_harmlessly(store, pool):
    with member(store) as (second, _):
        assert tell(second, "own, others = np.asarray(pool.slot(1)), np.asarray(pool.slot(0))") == "done"
        assert tell(second, "own[:8] = 5; others[:8] = 6") == "done"
        assert tell(second, "pool.leave(); assert pool.ranks == [] and 'left' in repr(pool)") == "done"
        assert tell(second, "assert (own[:8] == 5).all(); own[:] = 1; others[:] = 3") == "done"
        assert tell(second, "del pool; assert (own == 1).all() and others.sum() >= 0") == "done"
        assert (np.asarray(pool.slot(0))[:8] == 6).all()


def test_a_process_is_in_one_pool_of_a_name_only_once(store, pool):
    with pytest.raises(hmc.HMCError, match="addresses"):
        hmc.Pool(store, host_size=SIZE)
    with hmc.Pool(store, name="another", capacity=2, host_size=SIZE) as other:
        pool.copy(other.slot(0), b"between pools")
        other.copy(pool.slot(0)[:13], other.slot(0)[:13])
        assert bytes(pool.slot(0)[:13]) == b"between pools"
    assert pool.ranks == [0]


def test_members_come_and_go(store, pool):
    with member(store) as (second, _):
        joined = pool.next_event(timeout=PATIENCE)
        assert (joined.kind, joined.rank, joined.reason) == ("joined", 1, "")
        assert repr(joined) == "<hmc.PoolEvent: rank 1 joined>"
        with pytest.raises(hmc.DeadlineExceeded):
            pool.next_event(timeout=0)
        assert second.finish()[0] == 0
        left = pool.next_event(timeout=PATIENCE)
        assert (left.kind, left.rank) == ("left", 1)
        assert pool.ranks == [0]


def test_a_killed_member_is_noticed_and_the_others_go_on(store, pool):
    with member(store) as (second, _), member(store) as (third, _), member(store):
        assert {pool.next_event(timeout=PATIENCE).rank for _ in range(3)} == {1, 2, 3}
        view = np.asarray(pool.slot(1))
        gone = pool.slot(1)
        second.send(signal.SIGKILL)
        left = pool.next_event(timeout=PATIENCE)
        assert (left.kind, left.rank) == ("left", 1)
        for copy in (lambda: pool.copy(gone, b"x"), lambda: pool.copy(bytearray(8), gone)):
            with pytest.raises((hmc.NotFound, hmc.PeerLost), match="1"):
                copy()
        with pytest.raises(hmc.NotFound, match="rank 1"):
            pool.slot(1)
        view[:] = 1  # does no harm
        pool.copy(pool.slot(2), b"still here")
        assert tell(third, "assert bytes(pool.slot(2)[:10]) == b'still here'") == "done"
        # All others are taken: it waits until the store has heard of the death, too.
        with member(store) as (again, rank):
            assert rank == 1
            assert tell(again, "assert not np.asarray(pool.slot(1)).any()") == "done"


def test_registered_memory_is_kept_until_it_is_unregistered(pool):
    array = np.arange(1000)
    pool.register(array)
    pool.copy(pool.slot(0), array)
    pool.unregister(array)
    with pytest.raises(hmc.NotFound):
        pool.unregister(array)
    with pytest.raises(ValueError, match="read-only"):
        pool.register(b"bytes")
    with pytest.raises(hmc.InvalidArgument, match="slot of the pool"):
        pool.register(pool.slot(0))


def test_who_brings_nothing_can_copy(store, pool):
    with member(store, host_size=0) as (guest, _):
        assert tell(guest, "pool.copy(pool.slot(0), b'from a guest')") == "done"
        assert bytes(pool.slot(0)[:12]) == b"from a guest"
        assert pool.slot(1).nbytes == 0
        with pytest.raises(hmc.NotFound, match="rank 1"):
            pool.copy(pool.slot(1), b"x")


@pytest.mark.parametrize("sides, error, words", [
    (lambda slot: (slot, b"x", SIZE + 1), hmc.OutOfRange, "1 bytes to copy from|passes the end"),
    (lambda slot: (slot[:4], b"12345"), hmc.OutOfRange, "5 bytes passes the end of the 4 bytes to"),
    (lambda slot: (slot[:4], slot[8:16]), hmc.InvalidArgument, "from 8 bytes to 4 bytes"),
    (lambda slot: (bytearray(4), b"12345"), hmc.InvalidArgument, "from 5 bytes to 4 bytes"),
    (lambda slot: (slot.address, slot.address), hmc.InvalidArgument, "pass size="),
    (lambda slot: (b"12345", slot), ValueError, "read-only"),
    (lambda slot: (np.zeros((4, 4))[:, 1], slot), ValueError, "not contiguous"),
    (lambda slot: ("text", slot), TypeError, "str has no memory"),
    (lambda slot: (None, slot), TypeError, "NoneType has no memory"),
    (lambda slot: (True, slot), TypeError, "bool has no memory"),
    (lambda slot: (0, slot), hmc.InvalidArgument, "0 is no address"),
    (lambda slot: (-1, slot), hmc.InvalidArgument, "-1 is no address"),
    (lambda slot: (slot, b"12345", "5"), TypeError, "size is '5': pass an integer"),
    (lambda slot: (slot, b"12345", -5), hmc.InvalidArgument, "size is -5: it is 0 or more"),
    (lambda slot: (slot, b"12345", None, -1), hmc.InvalidArgument, "timeout of -1"),
])
def test_sides_that_cannot_be_copied_are_refused_in_words(pool, sides, error, words):
    with pytest.raises(error, match=words):
        pool.copy(*sides(pool.slot(0)))


def test_slices_and_batches_are_checked(pool):
    slot = pool.slot(0)
    with pytest.raises(hmc.OutOfRange, match="rank 0's host slot"):
        slot[:SIZE + 1]
    with pytest.raises(TypeError, match="rank 0's host slot takes slices"):
        slot[5]
    with pytest.raises(hmc.InvalidArgument, match="copy_2d"):
        slot[::2]
    for bad in (5, "ab", (slot,), (slot, b"x", 1, 2)):
        with pytest.raises(TypeError, match=r"copies\[1\] is .*\(to, from\)"):
            pool.start_copy([(slot, b"x"), bad])
    empty = pool.start_copy([])
    empty.wait()
    assert empty.outcomes() == []
    with pytest.raises(hmc.OutOfRange, match="room for 4"):
        pool.slot(4)
    with pytest.raises(hmc.InvalidArgument, match="\"host\" or \"device\""):
        pool.slot(0, "gpu")
    with pytest.raises(AttributeError, match="not mapped CUDA memory"):
        slot.__cuda_array_interface__


@pytest.mark.parametrize("options, words", [
    (dict(rank=-1), "rank is -1"),
    (dict(host_size=-1), "host_size is -1"),
    (dict(host_size=1.5), "host_size is 1.5"),
    (dict(capacity=5), "capacity of 4"),
    (dict(host_size=SIZE + 1), str(SIZE)),
    (dict(device="cpux"), "cpux"),
    (dict(lease=0), "a lease of 0"),
    (dict(timeout=-1), "timeout of -1"),
    (dict(secret="another", timeout=1), "secret"),
])
def test_options_that_do_not_fit_are_refused_in_words(store, pool, options, words):
    with pytest.raises((hmc.HMCError, TypeError), match=words):
        hmc.Pool(store, **options)
    assert pool.ranks == [0]


def test_a_rank_is_given_once(store, pool):
    with pytest.raises(AssertionError, match="AlreadyExists.*rank 0"):
        with member(store, rank=0, timeout=1):
            pass
    with member(store, rank=3) as (_, rank):
        assert rank == 3 and pool.ranks == [0, 3]


def test_a_store_that_nobody_serves_is_an_error_in_time():
    with pytest.raises(hmc.HMCError, match="127.0.0.1:1"):
        hmc.Pool("tcp://127.0.0.1:1", capacity=1, timeout=0.5)


def test_after_leaving_the_pool_says_so(pool):
    slot = pool.slot(0)
    pool.leave(timeout=PATIENCE)
    for call in (lambda: pool.copy(slot, b"x"), lambda: pool.start_copy([(slot, b"x")]),
                 lambda: pool.next_event(timeout=PATIENCE), pool.leave):
        with pytest.raises(hmc.PeerLost, match="not in the pool"):
            call()
    assert pool.ranks == []


def test_waiting_for_an_event_ends_when_another_thread_leaves(pool):
    outcome = []

    def wait():
        try:
            pool.next_event(timeout=PATIENCE)
        except hmc.HMCError as error:
            outcome.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    pool.leave(timeout=PATIENCE)
    thread.join(PATIENCE)
    assert isinstance(outcome[0], hmc.PeerLost)


def test_an_exception_of_the_block_is_not_hidden(store):
    with pytest.raises(KeyError, match="mine"):
        with hmc.Pool(store, capacity=1, host_size=SIZE, serve_store=True) as pool:
            pool.leave()
            raise KeyError("mine")


def test_control_c_ends_a_wait_for_an_event(store):
    code = """
import hmc, sys
with hmc.Pool(sys.argv[1], capacity=1, serve_store=True, timeout=60) as pool:
    try:
        print("waiting")
        pool.next_event(timeout=100)
    except KeyboardInterrupt:
        print("interrupted")
"""
    with Child(code, store) as child:
        assert child.answer() == "waiting"
        child.send(signal.SIGINT)
        assert child.answer() == "interrupted"
        assert child.ends() == 0


def test_a_forked_child_is_told_to_make_its_own(pool):
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        said = b"nothing"
        try:
            pool.ranks
        except hmc.InvalidArgument as error:
            said = str(error).encode()
        finally:
            os.write(writer, said)
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        assert b"make a new Node or Pool here" in pipe.read()
    os.waitpid(pid, 0)


def test_other_threads_run_while_one_waits(pool):
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        before = len(ticks)
        with pytest.raises(hmc.DeadlineExceeded):
            pool.next_event(timeout=0.3)
        assert len(ticks) > before + 10
    finally:
        stop.set()
        thread.join(PATIENCE)
