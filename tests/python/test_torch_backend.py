"""torch.distributed over hmc: programs for gloo, with another name for the backend."""

import concurrent.futures
import datetime
import signal
import subprocess
import sys
import threading

import pytest

from ranks import Ranks
from torch_programs import (
    ASYNC, COLLECTIVES, DDP, END, GROUPS, HEAD, LATE, MESSAGES, STRIDED, WAIT_FOR_THE_DEAD)


def torch_distributed():
    torch = pytest.importorskip("torch")
    if not torch.distributed.is_available():
        pytest.skip("this torch is built without torch.distributed")


def ranks_of(code, world, tmp_path):
    torch_distributed()
    return Ranks(HEAD + code, world, lambda rank: {"OMP_NUM_THREADS": "1"},
                 lambda rank: (rank, world, tmp_path / "ranks"))


@pytest.mark.parametrize("world", [1, 3])
def test_every_collective_is_right(world, tmp_path):
    code = COLLECTIVES + (STRIDED + ASYNC + GROUPS if world > 1 else "")
    with ranks_of(code + END, world, tmp_path) as ranks:
        ranks.finish()


def test_messages_find_their_receives(tmp_path):
    with ranks_of(MESSAGES + LATE + END, 2, tmp_path) as ranks:
        ranks.finish()


def test_ddp_trains_the_same_model_on_all_ranks(tmp_path):
    with ranks_of(DDP + END, 2, tmp_path) as ranks:
        ranks.finish()


def test_a_dead_rank_is_an_error_at_the_others(tmp_path):
    with ranks_of(WAIT_FOR_THE_DEAD, 3, tmp_path) as ranks:
        for rank in range(3):
            assert ranks[rank].answer() == "ready"
        ranks[2].process.send_signal(signal.SIGKILL)
        for rank in range(2):
            for name in ("all_reduce", "recv", "send", "barrier"):
                assert ranks[rank].answer() == name + " True"


@pytest.fixture(scope="module")
def alone():
    """torch.distributed with a world of one, in this process."""
    torch_distributed()
    import torch.distributed as dist

    import hmc.torch  # noqa: F401

    dist.init_process_group("hmc", store=dist.HashStore(), rank=0, world_size=1,
                            timeout=datetime.timedelta(seconds=30))
    yield dist
    dist.destroy_process_group()


def test_says_what_is_not_supported(alone):
    import torch

    with pytest.raises(NotImplementedError, match="layout torch.sparse_coo"):
        alone.all_reduce(torch.eye(3).to_sparse())
    with pytest.raises(NotImplementedError, match="tensor on meta.*host only"):
        alone.broadcast(torch.empty(3, device="meta"), 0)
    with pytest.raises(NotImplementedError, match="not by BAND"):
        alone.all_reduce(torch.ones(3, dtype=torch.int32), op=alone.ReduceOp.BAND)
    with pytest.raises(NotImplementedError, match="no AVG of torch.int64"):
        alone.all_reduce(torch.ones(3, dtype=torch.int64), op=alone.ReduceOp.AVG)


def test_says_which_sizes_do_not_fit(alone):
    import torch

    with pytest.raises(ValueError, match="add up"):
        alone.all_to_all_single(torch.ones(3), torch.ones(3), [2], [3])
    with pytest.raises(ValueError, match="8 bytes to send and 12 to receive"):
        alone.all_to_all_single(torch.ones(3), torch.ones(2))
    group = alone.distributed_c10d._get_default_group()
    with pytest.raises(ValueError, match="8 bytes to send, so 1 ranks receive 8, not 12"):
        group._allgather_base(torch.ones(3), torch.ones(2))
    with pytest.raises(ValueError, match="rank 0 sends to rank 0"):
        group.send([torch.ones(3)], 0, 0)


def test_without_torch_the_import_says_what_is_missing():
    done = subprocess.run([sys.executable, "-c", "import sys\nsys.modules['torch'] = None\n"
                           "import hmc.torch"], stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode != 0
    assert "ImportError: hmc.torch is a backend of torch.distributed, which cannot be imported" \
        in done.stderr


class SlowStore:
    """A store that lets the first rank come only after the second has asked for it."""

    def __init__(self, store, rank, asked):
        self.store, self.rank, self.asked = store, rank, asked

    def __getattr__(self, name):
        return getattr(self.store, name)

    def set(self, key, value):
        if self.rank == 0:
            assert self.asked.wait(60)
        self.store.set(key, value)

    def wait(self, keys, timeout):
        try:
            self.store.wait(keys, datetime.timedelta(milliseconds=10))
        except RuntimeError:  # it is not there yet
            self.asked.set()
            self.store.wait(keys, timeout)

    def get(self, key):
        value = self.store.get(key)
        self.asked.set()
        return value


def test_a_second_group_does_not_read_what_the_first_one_told():
    torch_distributed()
    from torch.distributed import HashStore

    from hmc.torch_meeting import meet

    store = HashStore()
    for _ in range(2):
        asked = threading.Event()
        with concurrent.futures.ThreadPoolExecutor(2) as threads:
            met = list(threads.map(
                lambda rank: meet(SlowStore(store, rank, asked), rank, 2,
                                  datetime.timedelta(seconds=60)), (0, 1)))
            list(threads.map(lambda one: one.core.barrier(60), met))


def test_a_rank_that_does_not_come_is_named():
    torch_distributed()
    import torch.distributed as dist

    import hmc.torch

    with pytest.raises(TimeoutError, match="rank 1 of 2 did not come in time"):
        hmc.torch.ProcessGroup(dist.HashStore(), 0, 2, datetime.timedelta(milliseconds=300))
