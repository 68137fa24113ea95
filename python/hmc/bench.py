"""`python -m hmc bench --python`: what Python adds, beside what it cannot do without.

Every figure is measured in turns with its yardstick, in the same run: an empty call of the same
binding library, the same transfer made by C++, the bare copies.
"""

import argparse
import array
import asyncio
import json
import os
import platform
import random
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable, Iterator, List, Optional, Tuple

import hmc
from hmc._core import Yardstick

BLOCKS = 100000
BLOCK = 4096
AWAITED = 10000
PATIENCE = 60  # seconds for the other process


class Bar:
    """One promise: a figure, its yardstick, their ratio and the limit."""

    def __init__(self, what: str, measured: str, against: str, value: float, limit: float,
                 unit: str = "x", most: bool = True) -> None:
        self.what = what
        self.measured = measured
        self.against = against
        self.value = value
        self.limit = limit
        self.met = value <= limit if most else value >= limit
        self.rule = "%s %g %s" % ("<=" if most else ">=", limit, unit)


def duration(nanoseconds: float) -> str:
    """The time in the unit that suits it."""
    for unit, size in (("ns", 1), ("us", 1e3), ("ms", 1e6)):
        if nanoseconds < 1000 * size:
            return "%.3g %s" % (nanoseconds / size, unit)
    return "%.3g s" % (nanoseconds / 1e9)


def nanoseconds_each(call: Callable[[], Any], rounds: int) -> float:
    """Of one of `rounds` calls in a row."""
    start = time.perf_counter_ns()
    for _ in range(rounds):
        call()
    return (time.perf_counter_ns() - start) / rounds


class Turns:
    """Two things measured in turns, and what lies between neighbours: the machine changes its speed
    while it is measured, and both of a pair have the same."""

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


class Server:
    """The other process: a Node with a pool, and a Session's server."""

    def __init__(self) -> None:
        # Its own, so that two benchmarks at a time do not meet.
        self.folder = tempfile.TemporaryDirectory(prefix="hmc-bench-")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hmc.bench", "--serve", self.folder.name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdin and self.process.stdout
        self._leave = self.process.stdin
        self._said = self.process.stdout
        ready = select.select([self._said], [], [], PATIENCE)[0]
        line = self._said.readline() if ready else b""
        if not line:
            self.process.kill()
            raise hmc.HMCError("the benchmark's other process %s; its status is %d" % (
                "ended" if ready else "said nothing for %d s" % PATIENCE, self.process.wait()))
        self.facts = json.loads(line)

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: Any) -> None:
        self._leave.close()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._said.close()
        self.folder.cleanup()


def serve(folder: str) -> None:
    """What the other process does until its standard input ends."""
    session = hmc.create_session(buffer_size=1 << 20, local_ip="127.0.0.1")
    session.set_ctrl_uds_dir(folder)
    ports = free_ports(3)
    session.init_server(bind_ip="127.0.0.1", ucx_port=ports[0], rdma_port=ports[1],
                        ctrl_tcp_port=ports[2], self_id=0)
    with hmc.Node(name="bench server", listen="tcp://127.0.0.1:0") as node:
        pool = node.allocate(BLOCKS * BLOCK, name="pool")
        print(json.dumps({"address": node.address, "data": ports[0], "ctrl": ports[2]}),
              flush=True)
        sys.stdin.read()
        del pool
    session.close_server()


def free_ports(count: int) -> List[int]:
    """Ports that nobody listens on at the moment."""
    import socket

    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def small_puts(server: Server, seconds: float) -> Iterator[Bar]:
    """Eight bytes, by the documented call and through a handle."""
    nothing = Yardstick()
    session = hmc.create_session(buffer_size=1 << 20, local_ip="127.0.0.1")
    session.set_ctrl_uds_dir(server.folder.name)
    session.connect(peer_id=0, self_id=1, peer_ip="127.0.0.1", data_port=server.facts["data"],
                    ctrl_tcp_port=server.facts["ctrl"], conn=hmc.ConnType.IPC)
    arguments = ("127.0.0.1", server.facts["data"], 0, 0, 8, hmc.ConnType.IPC)
    yield call_bar("put_remote of 8 B", lambda: session.put_remote(*arguments),
                   lambda: nothing.put_remote(*arguments), seconds)
    with hmc.Node() as node:
        remote = node.connect(server.facts["address"]).open("pool")
        local = node.allocate(8)
        yield call_bar("put of 8 B through a handle", lambda: remote.put(local),
                       lambda: nothing.put(local), seconds)


def call_bar(what: str, ours: Callable[[], Any], nothing: Callable[[], Any],
             seconds: float) -> Bar:
    turns = Turns(lambda: nanoseconds_each(ours, 2000), lambda: nanoseconds_each(nothing, 2000),
                  seconds)
    return Bar(what, duration(turns.ours), "an empty call %s" % duration(turns.theirs),
               turns.ratio, 3)


def large_puts(server: Server, seconds: float) -> Iterator[Bar]:
    """What is left of the speed that C++ has."""
    with hmc.Node() as node:
        remote = node.connect(server.facts["address"]).open("pool")
        for size in (1 << 20, 64 << 20):
            local = node.allocate(size)
            rounds = max(1, (64 << 20) // size)

            def puts() -> None:
                for _ in range(rounds):
                    remote.put(local)

            turns = Turns(lambda: nanoseconds_each(puts, 1) / rounds,
                          lambda: Yardstick.puts(remote, local, rounds), seconds)
            yield Bar("put of %d MiB" % (size >> 20), "%.3g GB/s" % (size / turns.ours),
                      "C++ %.3g GB/s" % (size / turns.theirs), 1 / turns.ratio, 0.98, most=False)


def many_blocks(server: Server, seconds: float) -> Iterator[Bar]:
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
            lambda: Yardstick.copies(bare, local, offsets[1], offsets[0], BLOCK), 4 * seconds)
    yield Bar("%d blocks of 4 KiB in one call" % BLOCKS, duration(turns.ours),
              "bare copies %s" % duration(turns.theirs), turns.difference / BLOCKS, 50,
              "ns each beyond")


def awaited(server: Server, seconds: float) -> Iterator[Bar]:
    """Transfers over tcp in asyncio, all at once; then one that cannot end."""
    with hmc.Node(transports=["tcp"]) as node:
        remote = node.connect(server.facts["address"]).open("pool")
        local = node.allocate(BLOCK)

        async def all_at_once() -> float:
            start = time.perf_counter_ns()
            await asyncio.gather(*[remote.start_put(local) for _ in range(AWAITED)])
            return (time.perf_counter_ns() - start) / AWAITED

        each = statistics.median(asyncio.run(all_at_once()) for _ in range(5))
        yield Bar("%d transfers awaited at once, over tcp" % AWAITED, duration(each) + " each",
                  "", each / 1000, 30, "us")

        async def for_nothing() -> float:
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
            share = asyncio.run(for_nothing())
        finally:
            server.process.send_signal(signal.SIGCONT)
        yield Bar("awaiting a peer that is stopped", "%.2g %% of a core" % (share * 100), "",
                  share * 100, 1, "%")


def imports(_server: Server, _seconds: float) -> Iterator[Bar]:
    """A fresh interpreter each time."""
    code = "import time; t = time.perf_counter_ns(); import hmc; print(time.perf_counter_ns() - t)"
    times = [int(subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE,
                                stdout=subprocess.PIPE).stdout) for _ in range(11)]
    took = statistics.median(times)
    yield Bar("import hmc", duration(took), "", took / 1e6, 60, "ms")


def show(bars: List[Bar], as_json: bool) -> None:
    """The table, or one JSON object a bar."""
    if as_json:
        print(json.dumps([{"what": bar.what, "measured": bar.measured, "against": bar.against,
                           "value": bar.value, "limit": bar.rule, "met": bar.met}
                          for bar in bars], indent=2))
        return
    rows = [("what", "measured", "against", "value", "limit", "result")]
    for bar in bars:
        rows.append((bar.what, bar.measured, bar.against, "%.2f" % bar.value, bar.rule,
                     "met" if bar.met else "MISSED"))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    print("  %d of %d met" % (sum(bar.met for bar in bars), len(bars)))


def main(arguments: List[str]) -> Optional[str]:
    """Measures everything and prints it."""
    parser = argparse.ArgumentParser(prog="python -m hmc bench --python",
                                     description="What Python adds to each transfer.")
    parser.add_argument("--seconds", type=float, default=1, help="time for each figure")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--serve", metavar="FOLDER", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.serve:
        serve(options.serve)
        return None
    if not options.json:
        print("python   %s, hmc %s, %s, %d cores, load %.2f" % (
            platform.python_version(), hmc.__version__, platform.machine(), os.cpu_count() or 1,
            os.getloadavg()[0]))
    bars: List[Bar] = []
    with Server() as server:
        for part in (small_puts, large_puts, many_blocks, awaited, imports):
            bars.extend(part(server, options.seconds))
    show(bars, options.json)
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
