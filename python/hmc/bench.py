"""`python -m hmc bench --python`: what Python adds to each transfer, of host memory or a device's.

Everything is measured in turns with its baseline, in the same run: an empty call of the same
binding library, the same transfer made by C++, bare copies.
"""

import argparse
import array
import asyncio
import contextlib
import importlib
import json
import os
import platform
import random
import select
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Tuple, Union

import hmc
from hmc._core import Baseline, Region, RemoteRegion
from hmc.plot import time_text

BLOCKS = 100000
BLOCK = 4096
AWAITED = 10000
TIMEOUT = 60  # seconds for the other process
MIB = 1 << 20


Target = Dict[str, Any]


def target(what: str, measured: str, against: str, value: float, limit: float, unit: str = "x",
           most: bool = True) -> Target:
    """A measurement, its baseline, and the limit for the two."""
    return {"what": what, "measured": measured, "against": against, "value": value,
            "limit": "%s %g %s" % ("<=" if most else ">=", limit, unit),
            "met": value <= limit if most else value >= limit}


def nanoseconds_each(call: Callable[[], Any], rounds: int) -> float:
    """The mean of `rounds` calls in a row."""
    start = time.perf_counter_ns()
    for _ in range(rounds):
        call()
    return (time.perf_counter_ns() - start) / rounds


class Turns:
    """Two things measured in turns. Ratio and difference are those of neighbours, because the
    machine changes its speed meanwhile."""

    def __init__(self, ours: Callable[[], float], theirs: Callable[[], float],
                 seconds: float) -> None:
        pairs: List[Tuple[float, float]] = []
        end = time.monotonic() + seconds
        while len(pairs) < 5 or time.monotonic() < end:
            pairs.append((ours(), theirs()))
        self.ours = statistics.median(one[0] for one in pairs)
        self.theirs = statistics.median(one[1] for one in pairs)
        self.ratio = statistics.median(one[0] / one[1] for one in pairs)
        self.difference = statistics.median(one[0] - one[1] for one in pairs)


class Server(NamedTuple):
    """The other process: a Node with a pool, and a Session's server."""

    process: "subprocess.Popen[bytes]"
    folder: str
    facts: Dict[str, Any]


@contextlib.contextmanager
def other_process(memory: str) -> Iterator[Server]:
    """Start it, and end it with the `with` block."""
    # A folder of its own, because two benchmarks may run at the same time.
    with tempfile.TemporaryDirectory(prefix="hmc-bench-") as folder, subprocess.Popen(
            [sys.executable, "-m", "hmc.bench", "--serve", folder, "--memory", memory],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        try:
            ready = select.select([process.stdout], [], [], TIMEOUT)[0]
            line = process.stdout.readline() if ready else b""
            if not line:
                raise hmc.HMCError("the benchmark's other process %s" % (
                    "ended" if ready else "printed nothing for %d s" % TIMEOUT))
            yield Server(process, folder, json.loads(line))
            process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(TIMEOUT)
        finally:
            process.kill()


def serve(folder: str, memory: str) -> None:
    """The other process, until its standard input ends."""
    session = hmc.create_session(buffer_size=1 << 20, local_ip="127.0.0.1")
    session.set_ctrl_uds_dir(folder)
    ports = free_ports(3)
    session.init_server(bind_ip="127.0.0.1", ucx_port=ports[0], rdma_port=ports[1],
                        ctrl_tcp_port=ports[2], self_id=0)
    with hmc.Node(name="bench server", listen="tcp://127.0.0.1:0") as node:
        node.allocate(BLOCKS * BLOCK, name="pool", device=memory)
        print(json.dumps({"address": node.address, "data": ports[0], "ctrl": ports[2]}),
              flush=True)
        sys.stdin.read()
    session.close_server()


def free_ports(count: int) -> List[int]:
    """Ports that nothing listens on now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def small_puts(server: Server, seconds: float) -> Iterator[Target]:
    """Eight bytes, by the documented call and through a handle."""
    nothing = Baseline()
    session = hmc.create_session(buffer_size=1 << 20, local_ip="127.0.0.1")
    session.set_ctrl_uds_dir(server.folder)
    session.connect(peer_id=0, self_id=1, peer_ip="127.0.0.1", data_port=server.facts["data"],
                    ctrl_tcp_port=server.facts["ctrl"], conn=hmc.ConnType.IPC)
    arguments = ("127.0.0.1", server.facts["data"], 0, 0, 8, hmc.ConnType.IPC)
    yield call_target("put_remote of 8 B", lambda: session.put_remote(*arguments),
                   lambda: nothing.put_remote(*arguments), seconds)
    with hmc.Node() as node:
        remote = node.connect(server.facts["address"]).open("pool")
        local = node.allocate(8)
        yield call_target("put of 8 B through a handle", lambda: remote.put(local),
                       lambda: nothing.put(local), seconds)
        for what, memory in unregistered(8):
            yield beside_registered("put of 8 B from %s" % what, lambda: remote.put(memory),
                                    lambda: remote.put(local), seconds)
            if what != "bytes":
                yield beside_registered("get of 8 B into %s" % what, lambda: remote.get(memory),
                                        lambda: remote.get(local), seconds)


def unregistered(size: int) -> Iterator[Tuple[str, Any]]:
    """Memory that no Node knows, and what it is."""
    yield "bytes", bytes(size)
    yield "a bytearray", bytearray(size)
    for module in ("numpy", "torch"):
        with contextlib.suppress(ImportError):
            library = importlib.import_module(module)
            yield "an array of " + module, library.zeros(size, dtype=library.uint8)


def beside_registered(what: str, ours: Callable[[], Any], registered: Callable[[], Any],
                      seconds: float) -> Target:
    """A call with memory that is not registered, beside the same with a region."""
    turns = Turns(lambda: nanoseconds_each(ours, 2000),
                  lambda: nanoseconds_each(registered, 2000), seconds)
    return target(what, time_text(turns.ours), "a region %s" % time_text(turns.theirs),
                  turns.ours / 1000, 1, "us")


def call_target(what: str, ours: Callable[[], Any], nothing: Callable[[], Any],
             seconds: float) -> Target:
    turns = Turns(lambda: nanoseconds_each(ours, 2000), lambda: nanoseconds_each(nothing, 2000),
                  seconds)
    return target(what, time_text(turns.ours), "an empty call %s" % time_text(turns.theirs),
               turns.ratio, 3)


def large_puts(server: Server, seconds: float) -> Iterator[Target]:
    """Beside the same puts made by C++."""
    with hmc.Node() as node:
        remote = node.connect(server.facts["address"]).open("pool")
        for size in (MIB, 64 * MIB):
            local = node.allocate(size)
            turns = beside_core(remote, local, local, 64 * MIB // size, seconds)
            yield rate_target("put of %d MiB" % (size // MIB), size, turns)


def beside_core(remote: RemoteRegion, local: Any, region: Region, rounds: int,
                seconds: float) -> Turns:
    """Puts of `local`, which is the memory of `region`, beside those that C++ makes."""
    return Turns(lambda: nanoseconds_each(lambda: remote.put(local), rounds),
                 lambda: Baseline.puts(remote, region, rounds), seconds)


def rate_target(what: str, size: int, turns: Turns) -> Target:
    return target(what, "%.3g GB/s" % (size / turns.ours), "C++ %.3g GB/s" % (size / turns.theirs),
                  1 / turns.ratio, 0.98, most=False)


def device_puts(server: Server, seconds: float) -> Iterator[Target]:
    """Between two processes on a device, in one call each, beside the same puts made by C++."""
    with hmc.Node() as node:
        remote = node.connect(server.facts["address"]).open("pool")
        for size in (8, 16 * MIB, 64 * MIB, 256 * MIB):
            what, local, region = memory_on(node, remote.device, size)
            turns = beside_core(remote, local, region, max(1, min(1000, 1024 * MIB // size)),
                                seconds)
            if size < MIB:
                yield target("put of %d B, %s" % (size, what), time_text(turns.ours),
                             "C++ " + time_text(turns.theirs), turns.difference / 1000, 3,
                             "us more")
            else:
                yield rate_target("put of %d MiB, %s" % (size // MIB, what), size, turns)


def memory_on(node: hmc.Node, device: str, size: int) -> Tuple[str, Any, Region]:
    """A tensor where torch can use the device, else a region; what it is, and its region."""
    with contextlib.suppress(ImportError, RuntimeError, AssertionError):
        import torch

        tensor = torch.zeros(size, dtype=torch.uint8, device=device)
        return "a tensor on " + device, tensor, node.register(tensor)
    region = node.allocate(size, device=device)
    return "a region on " + device, region, region


def many_blocks(server: Server, seconds: float) -> Iterator[Target]:
    """Blocks of a pool, described by two arrays of offsets, in random order."""
    offsets = []
    for seed in (1, 2):
        order = [index * BLOCK for index in range(BLOCKS)]
        random.Random(seed).shuffle(order)
        offsets.append(array.array("q", order))
    with hmc.Node() as node:
        remote = node.connect(server.facts["address"]).open("pool")
        local = node.allocate(BLOCKS * BLOCK)
        bare = node.allocate(BLOCKS * BLOCK)

        def put() -> None:
            remote.put_blocks(local, offsets[0], offsets[1], BLOCK)

        turns = Turns(
            lambda: nanoseconds_each(put, 1),
            lambda: Baseline.copies(bare, local, offsets[1], offsets[0], BLOCK), 4 * seconds)
    yield target("%d blocks of 4 KiB in one call" % BLOCKS, time_text(turns.ours),
              "bare copies %s" % time_text(turns.theirs), turns.difference / BLOCKS, 50,
              "ns each beyond")


def awaited(server: Server, seconds: float) -> Iterator[Target]:
    """Transfers over tcp in asyncio, all at once; then one that cannot end."""
    with hmc.Node(transports=["tcp"]) as node:
        remote = node.connect(server.facts["address"]).open("pool")
        local = node.allocate(BLOCK)

        async def all_at_once() -> float:
            start = time.perf_counter_ns()
            await asyncio.gather(*[remote.start_put(local) for _ in range(AWAITED)])
            return (time.perf_counter_ns() - start) / AWAITED

        each = statistics.median(asyncio.run(all_at_once()) for _ in range(5))
        yield target("%d transfers awaited at once, over tcp" % AWAITED, time_text(each) + " each",
                  "", each / 1000, 30, "us")

        async def until_timeout() -> float:
            transfer = remote.start_put(local)
            before = time.process_time(), time.monotonic()
            try:
                await asyncio.wait_for(transfer, max(seconds, 2))
            except asyncio.TimeoutError:
                pass
            return (time.process_time() - before[0]) / (time.monotonic() - before[1])

        server.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, server.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        try:
            share = asyncio.run(until_timeout())
        finally:
            server.process.send_signal(signal.SIGCONT)
        yield target("awaiting a peer that is stopped", "%.2g %% of a core" % (share * 100), "",
                  share * 100, 1, "%")


def imports(_server: Server, _seconds: float) -> Iterator[Target]:
    """A fresh interpreter each time."""
    code = "import time; t = time.perf_counter_ns(); import hmc; print(time.perf_counter_ns() - t)"
    times = [int(subprocess.run([sys.executable, "-c", code], check=True, timeout=TIMEOUT,
                                stdout=subprocess.PIPE).stdout) for _ in range(11)]
    took = statistics.median(times)
    yield target("import hmc", time_text(took), "", took / 1e6, 60, "ms")


def show(targets: List[Target], as_json: bool) -> None:
    """The table, or one JSON object a target."""
    if as_json:
        print(json.dumps(targets, indent=2))
        return
    rows = [["what", "measured", "against", "value", "limit", "result"]]
    for one in targets:
        rows.append(list(dict(one, value="%.2f" % one["value"],
                              met="met" if one["met"] else "MISSED").values()))
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    print("  %d of %d met" % (sum(one["met"] for one in targets), len(targets)))


def main(arguments: List[str]) -> Union[int, str]:
    """Measures everything and prints it; returns the exit status, 0 when all targets were met."""
    parser = argparse.ArgumentParser(prog="python -m hmc bench --python",
                                     description="What Python adds to each transfer.")
    parser.add_argument("--seconds", type=float, default=1, help="time for each measurement")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--memory", metavar="DEVICE", default="cpu",
                        help="cuda:0 measures tensors there instead of host memory")
    parser.add_argument("--serve", metavar="FOLDER", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if not (options.json or options.serve):
        print("python   %s, hmc %s, %s, %d cores, load %.2f" % (
            platform.python_version(), hmc.__version__, platform.machine(), os.cpu_count() or 1,
            os.getloadavg()[0]))
    targets: List[Target] = []
    on_host = (small_puts, large_puts, many_blocks, awaited, imports)
    try:
        if options.serve:
            serve(options.serve, options.memory)
            return 0
        with other_process(options.memory) as server:
            for part in on_host if options.memory == "cpu" else (device_puts,):
                targets.extend(part(server, options.seconds))
    except hmc.HMCError as error:
        return "hmc: %s" % error
    show(targets, options.json)
    return 0 if all(one["met"] for one in targets) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
