"""What one process of the soak does over one transport, and how it notices that something is wrong.

Every byte that is put can be recomputed from what the note about it says, so its reader needs no copy.
"""

import json
import random
import struct
import threading
import time
import zlib

import hmc

KIB = 1 << 10
TIMEOUT = 5.0
LEASE = 6.0
# Two leases are what a blocking call may take longer than its timeout; the rest is for a machine that is busy.
LONGEST = TIMEOUT + 2 * LEASE + 10
# A new process of the same number writes elsewhere than the one before it, of which bytes may
# still lie in the socket of a process that was stopped.
LIVES = 6
INBOX = 256 * KIB
BULK = 2048 * KIB
STATIC = 4096 * KIB
LIST = [64, 4096, 1000, 16 * KIB, 1, 333]  # bytes of the blocks of a list
HEAD = struct.Struct("<4sQIII")  # what, number, offset, size, checksum


def pattern(seed, size):
    return random.Random(seed).getrandbits(8 * size).to_bytes(size, "little")


class Log:
    """What this process tells the one that started it; safe from any thread."""

    def __init__(self):
        self._lock = threading.Lock()
        self.counts = {}  # by transport and kind: operations and bytes

    def say(self, **what):
        with self._lock:
            print(json.dumps(what), flush=True)

    def violation(self, text):
        self.say(violation=text)

    def add(self, transport, what, size):
        with self._lock:
            count = self.counts.setdefault(transport + " " + what, [0, 0])
            count[0] += 1
            count[1] += size

    def failed(self, transport, other, error):
        """A call that failed: whether a fault explains it, the other process knows."""
        self.say(failed=type(error).__name__, transport=transport, other=other, why=str(error)[:300])


class Watch:
    """Says how long its process stood still, so that calls are not blamed for it. On a machine that
    is very busy that need not be a fault of ours."""

    def __init__(self, log):
        self.log = log
        self.stopped = 0.0
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self):
        never = threading.Event()
        last = time.monotonic()
        while True:
            never.wait(0.1)
            now = time.monotonic()
            self.stopped += max(0.0, now - last - 0.2)
            if now - last > LEASE / 4:
                self.log.say(stood_still=now - last)
            last = now


class Traffic:
    """A Node of one transport: puts with notes, gets, lists, cancels, to all others in turn."""

    def __init__(self, transport, me, life, log, watch, pause):
        self.transport, self.me, self.life, self.log, self.watch = transport, me, life, log, watch
        self.pause = pause
        self.over = threading.Event()
        self.random = random.Random("%s %s %s" % (transport, me, life))
        tls = transport == "tcp+tls"
        self.node = hmc.Node(
            name="%d" % me, listen="tcp://127.0.0.1:0", heartbeat=LEASE / 10, lease=LEASE,
            transports=["tcp" if tls else transport.split("-")[0]],
            secret="of the soak", tls="required" if tls else None)
        self.keep = []
        for number in range(4):
            for slot in range(LIVES):
                name = "%d-%d" % (number, slot)
                if transport == "ipc-own":
                    # Memory of the process itself, which others reach through the kernel.
                    self.keep.append(bytearray(INBOX))
                    self.keep.append(self.node.register(self.keep[-1], name="inbox" + name))
                else:
                    self.keep.append(self.node.allocate(INBOX, name="inbox" + name))
                self.keep.append(self.node.allocate(BULK, name="bulk" + name))
        self.static = self.node.allocate(STATIC, name="static", access="r")
        memoryview(self.static)[:] = pattern(me, STATIC)
        self.inboxes = {r.name: memoryview(r) for r in self.keep
                        if not isinstance(r, bytearray) and r.name.startswith("inbox")}
        self.local = self.node.allocate(BULK)
        self.back = self.node.allocate(BULK)
        self.addresses = {}
        self.opened = {}  # by number: address, peer, inbox, bulk, static
        self.acks = {}
        self.ack = threading.Condition()
        self.number = 0
        self.slot = life  # of the inboxes; another one after a failure, since a note may still be read
        self.threads = [threading.Thread(target=self.run, args=(step,)) for step in (self.act, self.hear)]
        self.statics = {number: pattern(number, STATIC) for number in range(4)}

    def start(self):
        for thread in self.threads:
            thread.start()

    def end(self):
        self.over.set()
        for thread in self.threads:
            thread.join(60)
            if thread.is_alive():
                self.log.violation("%s of %d: a thread does not end" % (self.transport, self.me))
        self.timed("close", self.node.close, 2 * LEASE + 10)

    def run(self, step):
        while not self.over.wait(self.pause):
            try:
                step()
            except Exception as error:  # of the soak itself, or one that no caller expects
                self.log.violation("%s of %d: %s: %s" % (self.transport, self.me, type(error).__name__, error))

    def timed(self, what, call, longest=LONGEST):
        begin, stopped = time.monotonic(), self.watch.stopped
        try:
            return call()
        finally:
            took = time.monotonic() - begin - (self.watch.stopped - stopped)
            if took > longest:
                self.log.violation("%s of %d: %s took %.1f s" % (self.transport, self.me, what, took))

    # What it starts.

    def act(self):
        others = [n for n in self.addresses if n != self.me]
        if not others:
            return
        other = self.random.choice(others)
        what = self.random.choice([self.put, self.put, self.get, self.list, self.bulk, self.cancel, self.probe])
        try:
            self.connect(other)
            self.timed(what.__name__, lambda: what(other))
        except hmc.HMCError as error:
            self.slot += 1
            self.opened.clear()
            self.log.failed(self.transport, other, error)
            self.over.wait(0.1)  # before the next attempt

    def connect(self, other):
        address = self.addresses[other]
        if other in self.opened and self.opened[other][0] == address:
            return
        peer = self.timed("connect", lambda: self.node.connect(address, timeout=TIMEOUT))
        slot = "%d-%d" % (self.me, self.slot % LIVES)
        names = ("inbox" + slot, "bulk" + slot, "static")
        self.opened[other] = (address, peer) + tuple(
            self.timed("open", lambda: peer.open(name, timeout=TIMEOUT)) for name in names)

    def put(self, other):
        """Bytes, then a note of them; the reader compares and answers."""
        _, peer, inbox, _, _ = self.opened[other]
        size = self.random.choice([8, 100, 4 * KIB, 64 * KIB, 200 * KIB])
        offset = self.random.randrange(INBOX - size + 1)
        self.number += 1
        data = pattern(self.number, size)
        memoryview(self.local)[:size] = data
        inbox[offset:offset + size].put(self.local[:size], timeout=TIMEOUT)
        number = self.number
        peer.notify(HEAD.pack(b"data", number, offset, size, zlib.crc32(data)) + b"%d" % self.slot, timeout=TIMEOUT)
        with self.ack:
            answered = self.ack.wait_for(lambda: self.acks.get(other) == number or not peer.connected
                                         or self.over.is_set(), TIMEOUT)
        if not answered:
            raise hmc.DeadlineExceeded("no answer to note %d" % number)
        self.log.add(self.transport, "put and note", size)

    def get(self, other):
        size = self.random.choice([1, 4 * KIB, 512 * KIB])
        offset = self.random.randrange(STATIC - size + 1)
        self.opened[other][4][offset:offset + size].get(self.back[:size], timeout=TIMEOUT)
        if bytes(memoryview(self.back)[:size]) != self.statics[other][offset:offset + size]:
            self.log.violation("%s of %d: a get from %d has other bytes" % (self.transport, self.me, other))
        self.log.add(self.transport, "get", size)

    def list(self, other):
        """A list of blocks, there and back."""
        bulk = self.opened[other][3]
        total = sum(LIST)
        self.number += 1
        data = pattern(self.number, total)
        memoryview(self.local)[:total] = data
        near, far, there, here = [], [], 0, 0
        for size in LIST:
            near.append(here)
            far.append(there)
            here, there = here + size, there + size + 777
        bulk.put_blocks(self.local, near, far, LIST, timeout=TIMEOUT)
        bulk.get_blocks(self.back, near, far, LIST, timeout=TIMEOUT)
        if bytes(memoryview(self.back)[:total]) != data:
            self.log.violation("%s of %d: a list came back from %d with other bytes" % (self.transport, self.me, other))
        self.log.add(self.transport, "list", 2 * total)

    def bulk(self, other):
        """All of the largest region, there and back."""
        self.number += 1
        data = pattern(self.number, 8 * KIB) * (BULK // (8 * KIB))
        memoryview(self.local)[:] = data
        bulk = self.opened[other][3]
        bulk.put(self.local, timeout=TIMEOUT)
        bulk.get(self.back, timeout=TIMEOUT)
        if bytes(memoryview(self.back)) != data:
            self.log.violation("%s of %d: %d bytes came back from %d changed" % (self.transport, self.me, BULK, other))
        self.log.add(self.transport, "put and get of 2 MiB", 2 * BULK)

    def cancel(self, other):
        """A get and a put that are cancelled: from then on our memory is ours."""
        bulk = self.opened[other][3]
        transfer = bulk.start_get(self.back)
        transfer.cancel()
        memoryview(self.back)[:] = b"\xee" * BULK
        put = bulk.start_put(self.local)
        put.cancel()
        memoryview(self.local)[:] = b"\x11" * BULK
        bulk.get(self.local, timeout=TIMEOUT)
        if bytes(memoryview(self.back)) != b"\xee" * BULK:
            self.log.violation("%s of %d: bytes came after a cancel" % (self.transport, self.me))
        self.log.add(self.transport, "cancel", 0)

    def probe(self, other):
        self.opened[other][1].probe(timeout=TIMEOUT)
        self.log.add(self.transport, "probe", 0)

    # What it hears.

    def hear(self):
        try:
            note = self.node.next_note(timeout=0.5)
        except hmc.DeadlineExceeded:
            return
        what, number, offset, size, checksum = HEAD.unpack(note.data[:HEAD.size])
        sender = int(note.peer.name)
        if what == b"answ":
            with self.ack:
                self.acks[sender] = number
                self.ack.notify_all()
            return
        slot = int(note.data[HEAD.size:])
        inbox = self.inboxes["inbox%d-%d" % (sender, slot % LIVES)]
        if zlib.crc32(inbox[offset:offset + size]) != checksum and note.peer.connected:
            self.log.violation("%s of %d: %d bytes of %d are not those that its note says"
                               % (self.transport, self.me, size, sender))
        try:
            note.peer.notify(HEAD.pack(b"answ", number, 0, 0, 0), timeout=TIMEOUT)
        except hmc.HMCError as error:
            self.log.failed(self.transport, sender, error)
