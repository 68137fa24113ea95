"""hmc.Pool without a store: what a launcher says."""

import os
import subprocess
import sys

import pytest

import hmc

RING = """
import os
import hmc

def wait_for(slot):
    while 0 in bytes(slot):
        os.sched_yield()


with hmc.Pool(host_size=4096) as pool:
    others = set()
    while len(others) < pool.capacity - 1:
        others.add(pool.next_event(timeout=60).rank)
    pool.copy(pool.slot((pool.rank + 1) % pool.capacity), bytes([pool.rank + 1]))
    wait_for(pool.slot(pool.rank)[:1])
    print("rank", pool.rank, "has", bytes(pool.slot(pool.rank)[:1])[0])
    # Nobody leaves before all have seen everybody: rank 0 first, then the others.
    done = pool.slot(0)[64:64 + pool.capacity]
    pool.copy(done[pool.rank:], b"1")
    if pool.rank == 0:
        wait_for(done)
    else:
        event = pool.next_event(timeout=60)
        while (event.kind, event.rank) != ("left", 0):
            event = pool.next_event(timeout=60)
"""


def test_ranks_of_pool_run_meet():
    command = [sys.executable, "-m", "hmc", "pool", "run", "--tag", "-n", "3"]
    done = subprocess.run(command + [sys.executable, "-c", RING], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=240)
    assert done.returncode == 0, done.stdout
    assert sorted(done.stdout.splitlines()) == [
        "[0] rank 0 has 3", "[1] rank 1 has 1", "[2] rank 2 has 2"]


def test_says_what_to_set_where_nobody_names_a_store(monkeypatch):
    for name in list(os.environ):
        if name.startswith(("HMC_POOL_", "SLURM_", "OMPI_", "PMI")):
            monkeypatch.delenv(name)
    for name in ("MASTER_ADDR", "RANK"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(hmc.InvalidArgument, match="HMC_POOL_STORE"):
        hmc.Pool(capacity=1)
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "two")
    with pytest.raises(hmc.InvalidArgument, match='RANK="two"'):
        hmc.Pool(capacity=1)
