"""Every program of examples/python, run as a user runs it."""

import importlib.util
import os
import re
import subprocess
import sys

import pytest

import documents

EXAMPLES = sorted((documents.ROOT / "examples/python").glob("*.py"))
SAYS = {
    "all_to_all": "exchanged",
    "asyncio_server": "answered 150 questions of 3 clients",
    "bm_ring": "4 ranks passed bytes around in four directions",
    "ddp": "trained the same model on 2 ranks",
    "hello": "received: hello, memory",
    "kv_cache": "decoded with 8 layers of 100 pages",
    "kv_pool": "3 workers put 24 blocks and fetched all of them",
    "object_store": "fetched half, tokens",
    "numpy_ring": "4 processes added 1000000 numbers each",
    "shm_allgather": "4 ranks know all process ids",
    "torch_tensors": "went there and back",
    "weights": "pushed 4 steps to 3 workers",
}
# Of these the length is a promise: what a newcomer has to write for such a task.
LONGEST = {"kv_cache": 60, "object_store": 50, "weights": 35}


def test_every_example_is_known_here():
    assert sorted(SAYS) == [path.stem for path in EXAMPLES]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_runs_and_verifies_what_it_moved(path):
    text = path.read_text()
    for module in re.findall(r"^import (numpy|torch)$", text, re.M):
        if importlib.util.find_spec(module) is None:
            pytest.skip("{} is not installed".format(module))
    done = subprocess.run([sys.executable, str(path)], stdout=subprocess.PIPE, cwd="/",
                          stderr=subprocess.STDOUT, text=True, timeout=240,
                          env=dict(os.environ, HMC_LOG="error"))
    assert done.returncode == 0, done.stdout
    assert SAYS[path.stem] in done.stdout


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_is_short(path):
    assert len(path.read_text().splitlines()) <= LONGEST.get(path.stem, 79)
