"""Big Memory and Share Memory of MemFabric in Python, by processes that are ranks."""

import pathlib
import subprocess
import sys

import pytest

from peers import PATIENCE, Child, free_port

PROGRAM = pathlib.Path(__file__).with_name("memfabric_ring.py")


def new_url():
    return "tcp://127.0.0.1:%d" % free_port()


@pytest.mark.parametrize("how", ["explicit", "auto"])
@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("package", ["mf_smem", "memfabric_hybrid"])
def test_ring_in_all_directions(package, ranks, how):
    done = subprocess.run([sys.executable, str(PROGRAM), package, new_url(), str(ranks), how],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=PATIENCE)
    assert done.returncode == 0, done.stdout


# A rank that runs the expression of each line and prints its value, or the exception.
RANK = """
import ctypes, sys
import mf_smem
from mf_smem import bm, shm
mf_smem.initialize()
config = bm.BmConfig()
config.auto_ranking = True
bm.initialize(sys.argv[1], 2, 0, config)
pool = bm.create(7, 2 << 20, 0)
pool.join()
host = ctypes.create_string_buffer(8)
print("ready")
for line in sys.stdin:
    try:
        print(eval(line))
    except RuntimeError as error:
        print("RuntimeError:", error)
"""
READ = "pool.copy_data(pool.peer_rank_ptr(0), ctypes.addressof(host), 8, bm.BmCopyType.G2H)"


def test_a_slot_is_out_of_reach_when_its_rank_has_left():
    url = new_url()
    with Child(RANK, url) as zero:
        assert zero.answer() == "ready"
        with Child(RANK, url) as one:
            assert one.answer() == "ready"
            assert [zero.ask("bm.bm_rank_id()"), one.ask("bm.bm_rank_id()")] == ["0", "1"]
            assert one.ask(READ) == "None"
            assert zero.ask("pool.leave()") == "None"
            assert "(-2007)" in one.ask(READ)  # rank 0 is not there
            assert zero.ask("pool.leave()").startswith("RuntimeError: pool 7 was not joined")
            assert int(zero.ask("pool.join()")) == int(one.ask("pool.peer_rank_ptr(0)"))
            assert one.ask(READ) == "None"
            assert one.finish() == (0, "")
        assert zero.finish() == (0, "")


def test_a_pool_that_nobody_holds_is_left():
    url = new_url()
    with Child(RANK, url) as zero:
        assert zero.answer() == "ready"
        with Child(RANK, url) as one:
            assert one.answer() == "ready"
            assert zero.ask("globals().pop('pool') and None") == "None"
            assert "(-2007)" in one.ask(READ)  # rank 0 is not there
            assert one.finish() == (0, "")


def test_a_forked_child_does_not_destroy_what_its_parent_has():
    code = """
import os, sys
import mf_smem
from mf_smem import bm
mf_smem.initialize()
config = bm.BmConfig()
config.rank_id = 0
bm.initialize(sys.argv[1], 1, 0, config)
pool = bm.create(0, 2 << 20, 0)
pool.join()
if os.fork() == 0:
    mf_smem.initialize()
    config.start_store = True
    bm.initialize(sys.argv[2], 1, 0, config)
    own = bm.create(0, 2 << 20, 0)
    own.join()
    del pool
    print(own.local_mem_size(), flush=True)
    sys.exit(0)
assert os.wait()[1] == 0
print(pool.local_mem_size())
"""
    with Child(code, new_url(), new_url()) as child:
        assert child.finish() == (0, "2097152\n" * 2)
