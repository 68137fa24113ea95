#!/usr/bin/env python3
"""Four processes that move bytes over everything that runs here while they are killed, stopped and restarted.

    soak.py [--minutes N] [--seed N]

Every byte is compared. Prints a report in Markdown and exits with 1 when anything was wrong. A call that
failed is wrong, too, unless its process or the other one met a fault shortly before.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import threading
import time

import hmc
from report import markdown
from traffic import LEASE, LONGEST

HERE = pathlib.Path(__file__).resolve().parent
PROCESSES = 4
SECRET = "of the soak"
# How long after a fault a failed call is put down to it.
SHADOW = LONGEST + 2 * LEASE
# A process that says nothing for so long hangs.
SILENCE = 60.0


def transports():
    """What runs here, by the name that traffic.py knows it by."""
    with hmc.Node() as node:
        usable = {path.transport for path in node.transports() if path.usable}
    return [name for name in ("ipc", "ipc-own", "tcp", "tcp+tls", "ucx", "verbs")
            if name.split("-")[0].split("+")[0] in usable]


class Worker:
    """A process.py, and what it printed. Another process takes its place after a kill."""

    def __init__(self, soak, number):
        self.soak, self.number = soak, number
        self.life = -1
        self.addresses = None
        self.resources = []
        self.start()

    def start(self):
        self.life += 1
        self.heard = time.monotonic()
        self.addresses, self.ended, self.counts = None, False, {}
        # Two of our own for each life, which nobody dials from.
        self.ports = [11000 + (self.number * 400 + self.life * 2 + i) % 1600 + self.soak.base for i in (0, 1)]
        options = {"me": self.number, "life": self.life, "transports": self.soak.transports, "ports": self.ports,
                   "store": self.soak.store, "pause": self.soak.pause}
        self.process = subprocess.Popen(
            [sys.executable, "-u", str(HERE / "process.py"), json.dumps(options)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, env={
                **os.environ, "HMC_LEASE_MS": "%d" % (LEASE * 1000), "HMC_TIMEOUT_MS": "5000",
                "HMC_CONNECT_TIMEOUT_MS": "5000", "HMC_SECRET": SECRET, "HMC_LOG": "error"})
        self.reader = threading.Thread(target=self.read, args=(self.process,), daemon=True)
        self.reader.start()

    def read(self, process):
        for line in process.stdout:
            try:
                said = json.loads(line)
            except ValueError:
                continue  # cut by a kill
            with self.soak.changed:
                self.heard = time.monotonic()
                self.counts = said.get("counts", self.counts)
                self.addresses = said.get("addresses", self.addresses)
                self.ended = self.ended or "ended" in said
                if "resources" in said:
                    self.resources.append(said["resources"])
                if "violation" in said:
                    self.soak.complain(said["violation"])
                if "stood_still" in said:
                    self.soak.faults["stood still by itself"] += 1
                    self.soak.last_fault[self.number] = time.monotonic()
                if "leaves" in said:
                    self.soak.last_leave = time.monotonic()
                if "failed" in said:
                    self.soak.judge(self.number, said)
                self.soak.changed.notify_all()

    def tell(self, **order):
        try:
            self.process.stdin.write(json.dumps(order) + "\n")
            self.process.stdin.flush()
        except OSError:
            pass  # it was killed

    def reap(self):
        """After it has ended: what it counted stays."""
        self.process.wait()
        self.reader.join()
        self.process.stdin.close()
        self.process.stdout.close()
        for what, (operations, size) in self.counts.items():
            self.soak.total[what][0] += operations
            self.soak.total[what][1] += size


class Soak:
    def __init__(self, minutes, seed, pause):
        self.random = random.Random(seed)
        self.pause = pause
        self.seconds = minutes * 60
        self.changed = threading.Condition()  # guards what the workers' threads change
        self.violations, self.faults, self.last_fault = [], collections.Counter(), {}
        self.last_leave = -1e9  # of a pool, by one of its members
        self.explained, self.total = collections.Counter(), collections.defaultdict(lambda: [0, 0])
        self.transports = transports()
        self.base = self.random.randrange(0, 18) * 1000
        self.anchor = hmc.Pool(self.free_store(), capacity=PROCESSES + 2, host_size=4096 << 10, serve_store=True,
                               lease=LEASE, heartbeat=LEASE / 10, secret=SECRET)
        self.workers = [Worker(self, number) for number in range(PROCESSES)]

    def free_store(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.store = "tcp://127.0.0.1:%d" % probe.getsockname()[1]
        return self.store

    def complain(self, violation):
        """One that is seen at once, so that nobody has to wait for the report."""
        print("%s violation: %s" % (time.strftime("%H:%M:%S"), violation), file=sys.stderr, flush=True)
        self.violations.append(violation)

    def judge(self, number, said):
        """A failed call is fine in the shadow of a fault. Pool and tags depend on all."""
        now = time.monotonic()
        concerned = range(PROCESSES) if said["other"] < 0 or said["transport"] == "tags" else (number, said["other"])
        shadows = [self.last_fault.get(one, -1e9) for one in concerned]
        if said["transport"] == "pool":
            shadows.append(self.last_leave)
        if any(now - begin < SHADOW for begin in shadows):
            self.explained["%s: %s" % (said["transport"], said["failed"])] += 1
        else:
            self.complain("no fault explains %s of %d over %s with %d: %s" % (
                said["failed"], number, said["transport"], said["other"], said["why"]))

    def wait(self, what, seconds=SILENCE):
        with self.changed:
            return self.changed.wait_for(what, seconds)

    def pass_by(self, seconds):
        """Lets the traffic run for so long; nothing waits for it."""
        threading.Event().wait(seconds)

    def introduce(self, end=False):
        for worker in self.workers:
            if not self.wait(lambda: worker.addresses is not None):
                self.complain("process %d does not start" % worker.number)
        order = {"addresses": {w.number: w.addresses for w in self.workers if w.addresses},
                 "ports": {w.number: w.ports for w in self.workers if w.addresses}, "end": end}
        for worker in self.workers:
            worker.tell(**order)

    def fault(self, worker):
        """One fault; returns when it is over, so that its shadow is short."""
        what = self.random.choice(["kill", "kill", "short stop", "long stop", "restart"])
        if worker.number == 0 and what in ("kill", "restart"):
            what = "short stop"  # this one shows over the whole time whether anything leaks
        self.faults[what] += 1
        self.last_fault[worker.number] = time.monotonic()
        if "stop" in what:
            worker.process.send_signal(signal.SIGSTOP)
            self.pass_by(self.random.uniform(0.05, 0.8) if what == "short stop" else LEASE * 1.5)
            worker.process.send_signal(signal.SIGCONT)
        elif what == "kill":
            worker.process.kill()
            worker.reap()
            worker.start()
            self.introduce()
        else:
            worker.tell(addresses={}, ports={}, end=True)
            self.finish(worker)
            worker.start()
            self.introduce()
        worker.heard = self.last_fault[worker.number] = time.monotonic()

    def finish(self, worker):
        """It was told to end."""
        if not self.wait(lambda: worker.ended, 2 * SILENCE):
            self.complain("process %d does not end" % worker.number)
            worker.process.send_signal(signal.SIGUSR1)  # prints where its threads are
            self.pass_by(2)
            worker.process.kill()
        try:
            code = worker.process.wait(SILENCE)
        except subprocess.TimeoutExpired:
            worker.process.kill()
            code = "no end after its last words"
        if code != 0 and worker.ended:
            self.complain("process %d ended with %s" % (worker.number, code))
        worker.reap()

    def look(self):
        for worker in self.workers:
            if worker.process.poll() is not None:
                self.complain("process %d died by itself: %s" % (worker.number, worker.process.returncode))
                worker.reap()
                worker.start()
                self.introduce()
            elif time.monotonic() - worker.heard > SILENCE:
                self.complain("process %d says nothing" % worker.number)
                worker.heard = time.monotonic()

    def run(self):
        begin = time.monotonic()
        self.introduce()
        while time.monotonic() - begin < self.seconds:
            # Now and then long enough that a failure has no fault to hide behind.
            self.pass_by(min(self.random.choice([1, 1, 2, 2, 4, 4, 45]), max(0.0, self.seconds - (time.monotonic() - begin))))
            self.look()
            if time.monotonic() - begin < self.seconds:
                self.fault(self.random.choice(self.workers))
        for worker in self.workers:
            self.last_fault[worker.number] = time.monotonic()  # the others leave
        self.introduce(end=True)
        for worker in self.workers:
            self.finish(worker)
        self.anchor.leave()
        return time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pause", type=float, default=0.002, help="seconds between the steps of a thread")
    options = parser.parse_args()
    soak = Soak(options.minutes, options.seed, options.pause)
    seconds = soak.run()
    print(markdown(soak, options, seconds))
    return 1 if soak.violations else 0


if __name__ == "__main__":
    sys.exit(main())
