"""`python -m hmc bench --collectives`: hmc's backend of torch.distributed beside gloo's.

The same processes are ranks of both, and both do the same in turns, so that what the machine does
meanwhile counts for both.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import timedelta

import hmc
from hmc.bench import MIB, Target, show, target
from hmc.plot import time_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

    _Call = Callable[[Any], Any]  # of a group
    _Case = Tuple[str, int, _Call, _Call]  # operation, bytes, ours, gloo's

SIZES = (1 << 10, 32 << 10, MIB, 8 * MIB, 64 * MIB)
LARGE = 64 * MIB
PAIRS = 7  # times that both are measured
TIMEOUT = 600


def cases(world: int, smallest: int, largest: int) -> Iterator[_Case]:
    """What all ranks do, in the same order. The bytes are those of the larger tensor of a rank."""
    import torch
    import torch.distributed as dist

    yield "barrier", 0, dist.barrier, dist.barrier
    for size in [size for size in SIZES if smallest <= size <= largest]:
        whole = torch.zeros(size // 4)
        other = torch.zeros(size // 4)
        parts = list(other.chunk(world))
        mine = torch.zeros(size // 4 // world)

        def all_reduce(group: Any, whole: Any = whole) -> None:
            dist.all_reduce(whole, group=group)

        def broadcast(group: Any, whole: Any = whole) -> None:
            dist.broadcast(whole, 0, group=group)

        def all_gather(group: Any, parts: Any = parts, mine: Any = mine) -> None:
            dist.all_gather(parts, mine, group=group)

        def all_to_all(group: Any, whole: Any = whole, other: Any = other) -> None:
            dist.all_to_all_single(other, whole, group=group)

        def reduce_scatter(group: Any, mine: Any = mine, parts: Any = parts) -> None:
            dist.reduce_scatter(mine, parts, group=group)

        yield "allreduce", size, all_reduce, all_reduce
        yield "broadcast", size, broadcast, broadcast
        yield "allgather", size, all_gather, all_gather
        yield "alltoall", size, all_to_all, all_to_all
        # Many versions of gloo have none: all_reduce is what their users call.
        yield "reduce_scatter", size, reduce_scatter, all_reduce


def seconds_each(call: _Call, group: Any, rounds: int) -> float:
    import torch.distributed as dist

    dist.barrier(group)
    start = time.perf_counter()
    for _ in range(rounds):
        call(group)
    return (time.perf_counter() - start) / rounds


def measure(rank: int, world: int, meeting: str, smallest: int, largest: int) -> None:
    """One rank. The first prints what came out."""
    import torch.distributed as dist

    import hmc.torch  # noqa: F401

    dist.init_process_group("gloo", init_method="file://" + meeting, rank=rank, world_size=world,
                            timeout=timedelta(seconds=TIMEOUT))
    gloo = dist.group.WORLD
    ours = dist.new_group(backend="hmc")
    for operation, size, with_ours, with_gloo in cases(world, smallest, largest):
        rounds = max(1, min(100, 4 * MIB // max(size, 1)))
        with_ours(ours)
        with_gloo(gloo)
        pairs = [(seconds_each(with_ours, ours, rounds), seconds_each(with_gloo, gloo, rounds))
                 for _ in range(PAIRS)]
        everyones: List[Any] = [None] * world
        dist.all_gather_object(everyones, pairs)
        # An operation takes as long as it does where it takes longest.
        slowest = [(max(one[0] for one in turn), max(one[1] for one in turn))
                   for turn in zip(*everyones)]
        if rank == 0:
            print(json.dumps({"operation": operation, "size": size, "pairs": slowest}), flush=True)
    dist.destroy_process_group()


def targets_of(world: int, smallest: int, largest: int) -> Iterator[Target]:
    with tempfile.TemporaryDirectory(prefix="hmc-bench-") as folder:
        command = [sys.executable, "-m", "hmc.bench_collectives", "--meeting", folder + "/ranks",
                   "--ranks", str(world), "--smallest", str(smallest), "--largest",
                   str(largest), "--rank"]
        variables = dict({"OMP_NUM_THREADS": "1"}, **os.environ)
        ranks = [subprocess.Popen([*command, str(rank)], env=variables, text=True,
                                  stdout=subprocess.PIPE if rank == 0 else None)
                 for rank in range(world)]
        try:
            assert ranks[0].stdout
            for line in ranks[0].stdout:
                yield target_of(world, json.loads(line))
            if any(rank.wait(TIMEOUT) != 0 for rank in ranks):
                raise hmc.HMCError("a rank of the benchmark has failed; what it said is above")
        finally:
            for rank in ranks:
                rank.kill()
                rank.wait()


def target_of(world: int, told: Dict[str, Any]) -> Target:
    operation, size, pairs = told["operation"], told["size"], told["pairs"]
    ratio = statistics.median(ours / gloo for ours, gloo in pairs)
    ours, gloo = (statistics.median(pair[side] for pair in pairs) * 1e9 for side in (0, 1))
    what = "%d ranks: %s" % (world, operation)
    if size != 0:
        what += " of %s" % ("%d MiB" % (size // MIB) if size >= MIB else "%d KiB" % (size >> 10))
    against = "gloo's allreduce" if operation == "reduce_scatter" else "gloo"
    return target(what, time_text(ours), "%s %s" % (against, time_text(gloo)), ratio,
                  0.6 if size >= LARGE else 1.0)


def main(arguments: List[str]) -> Optional[str]:
    """Measures everything and prints it."""
    parser = argparse.ArgumentParser(prog="python -m hmc bench --collectives",
                                     description="hmc's backend of torch.distributed beside gloo.")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--smallest", type=int, default=0, help="bytes of the smallest tensors")
    parser.add_argument("--largest", type=int, default=LARGE, help="bytes of the largest tensors")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--meeting", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.rank is not None:
        measure(options.rank, options.ranks[0], options.meeting, options.smallest,
                options.largest)
        return None
    try:
        import hmc.torch  # noqa: F401
        import torch
    except ImportError as error:
        return "hmc bench --collectives measures beside torch's gloo: %s" % error
    if not torch.distributed.is_gloo_available():
        return "hmc bench --collectives measures beside gloo, which this torch is built without"
    if not options.json:
        print("torch %s, python %s, hmc %s, %s, %d cores, load %.2f" % (
            torch.__version__, platform.python_version(), hmc.__version__, platform.machine(),
            os.cpu_count() or 1, os.getloadavg()[0]))
    targets = [one for world in options.ranks
               for one in targets_of(world, options.smallest, options.largest)]
    show(targets, options.json)
    if all(one["met"] for one in targets):
        return None
    return "hmc: %d of %d targets were missed" % (sum(not one["met"] for one in targets),
                                                  len(targets))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
