"""Ranks that real launchers start: hmc.Pool and init_group know what these tell them."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from peers import HERE, PATIENCE, free_port, need
from ranks import END, HEAD, MEET
from slurm import Slurm

RANKS = 3
# Everybody tells its rank to rank 0, which leaves first and serves the store on.
POOL = """
import os
import hmc
with hmc.Pool(host_size=4096) as pool:
    others = set()
    while len(others) < pool.capacity - 1:
        others.add(pool.next_event(timeout=60).rank)
    all = pool.slot(0)[:pool.capacity]
    pool.copy(all[pool.rank:], bytes([pool.rank + 1]))
    if pool.rank == 0:
        while 0 in bytes(all):
            os.sched_yield()
        print("ranks", list(bytes(all)), flush=True)
    else:
        event = pool.next_event(timeout=60)
        while (event.kind, event.rank) != ("left", 0):
            event = pool.next_event(timeout=60)
"""
GROUP = HEAD + MEET + END


@pytest.fixture(params=["pool", "group"])
def program(request, tmp_path):
    """A file to start, and what all of its ranks print together."""
    if request.param == "group":
        pytest.importorskip("numpy")
    path = tmp_path / "program.py"
    path.write_text(POOL if request.param == "pool" else GROUP)
    expected = {"pool": ["ranks [1, 2, 3]"], "group": ["done"] * RANKS}[request.param]
    return path, expected


def launch(words, program, **variables):
    path, expected = program
    # What a launcher around the tests says is none of their business.
    inherited = {name: value for name, value in os.environ.items()
                 if not name.startswith(("HMC_POOL_", "SLURM_", "OMPI_", "PMI"))}
    done = subprocess.run([*words, str(path)], env={**inherited, **variables}, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=2 * PATIENCE)
    assert done.returncode == 0, done.stdout
    said = [line for line in re.sub(r"(?m)^\[\w+\]:", "", done.stdout).splitlines()
            if line in expected]
    assert said == expected, done.stdout


def version_of(program):
    if not shutil.which(program):
        pytest.skip("%s is not installed" % program)
    return subprocess.run([program, "--version"], stdout=subprocess.PIPE, text=True).stdout


def test_ranks_of_mpirun_meet(program):
    if "Open MPI" not in version_of("mpirun"):
        pytest.skip("mpirun is not Open MPI's")
    launch(["mpirun", "--oversubscribe", "-n", str(RANKS), sys.executable], program,
           OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


def test_ranks_of_torchrun_meet(program, tmp_path):
    need("torch")
    # torch 1.13 on Python 3.11 fails unless it redirects exactly one of the outputs.
    logs = ["--redirects", "1", "--tee", "1", "--log_dir", str(tmp_path)]
    launch([sys.executable, "-m", "torch.distributed.run", *logs, "--master_addr", HERE,
            "--master_port", str(free_port()), "--nproc_per_node", str(RANKS)], program)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    missing = Slurm.missing()
    if missing:
        pytest.skip(missing)
    with Slurm(tmp_path_factory.mktemp("slurm")) as cluster:
        yield cluster


def test_ranks_of_srun_meet(program, slurm):
    launch(["srun", "--overcommit", "-n", str(RANKS), sys.executable], program,
           SLURM_CONF=str(slurm.configuration))
