"""Tags between Sessions, and copies between members of a pool."""

import os
import random
import threading

import hmc
from traffic import KIB, LEASE, LIVES, LONGEST, TIMEOUT, pattern

PART = 40 * KIB  # of a Session's buffer: what one life of one rank writes
SLOT = 4096 * KIB
CONNS = [hmc.ConnType.IPC, hmc.ConnType.TCP, hmc.ConnType.AUTO]


class Loop:
    """Steps that threads repeat until the end; a failure that a fault may explain is told."""

    def __init__(self, name, me, life, log, watch, pause):
        self.transport, self.me, self.life, self.log, self.watch = name, me, life, log, watch
        self.pause = pause
        self.over = threading.Event()
        self.random = random.Random("%s %d %d" % (name, me, life))
        self.threads = []

    def start(self):
        self.threads = [threading.Thread(target=self.run, args=(step,)) for step in self.steps()]
        for thread in self.threads:
            thread.start()

    def run(self, step):
        while not self.over.wait(self.pause):
            begin, stopped = os.times().elapsed, self.watch.stopped
            try:
                step()
            except hmc.HMCError as error:
                self.failed(error)
                self.over.wait(0.1)  # before the next attempt
            except Exception as error:  # of the soak itself, or one that no caller expects
                self.violation("%s: %s" % (type(error).__name__, error))
            took = os.times().elapsed - begin - (self.watch.stopped - stopped)
            if took > 3 * LONGEST:  # a step has a few calls
                self.violation("%s took %.1f s" % (step.__name__, took))

    def violation(self, text):
        self.log.violation("%s of %d: %s" % (self.transport, self.me, text))

    def stop(self):
        self.over.set()
        for thread in self.threads:
            thread.join(60)
            if thread.is_alive():
                self.violation("a thread does not end")


class Tags(Loop):
    """Rank r puts into the Session of rank r + 1 and sends it a tag; that one looks and answers."""

    def __init__(self, me, life, log, watch, pause, ports):
        super().__init__("tags", me, life, log, watch, pause)
        self.data, self.control = ports
        self.session = hmc.create_session(buffer_size=4 * LIVES * PART, local_ip="127.0.0.1")
        self.session.init_server(bind_ip="127.0.0.1", ucx_port=self.data, ctrl_tcp_port=self.control,
                                 self_id=me, ctrl_uds_dir="")
        self.next = (me + 1) % 4
        self.slot = life  # of the buffer; another one after a failure, since a tag may still be read
        self.addresses = {}  # by rank: data and control port
        self.connected = None
        self.number = 0
        self.bytes = self.session.buf.core.view()

    def steps(self):
        return [self.send, self.receive]

    def failed(self, error):
        self.drop()
        self.slot += 1
        self.log.failed("tags", self.next, error)

    def drop(self):
        if self.connected:
            ports, conn = self.connected
            self.connected = None
            try:
                self.session.disconnect("127.0.0.1", ports[0], conn)
            except hmc.HMCError:
                pass  # it is gone already

    def send(self):
        ports = self.addresses.get(self.next)
        if ports is None:
            self.over.wait(0.1)
            return
        if self.connected is None or self.connected[0] != ports:
            self.drop()
            conn = self.random.choice(CONNS)
            self.session.connect(peer_id=self.next, self_id=self.me, peer_ip="127.0.0.1", data_port=ports[0],
                                 ctrl_tcp_port=ports[1], uds_dir="", conn=conn, timeout=TIMEOUT)
            self.connected = (ports, conn)
        conn = self.connected[1]
        self.number += 1
        size = 1 + self.number * 37 % PART
        at = self.place(self.me, self.slot)
        data = pattern(self.number, size)
        self.bytes[at:at + size] = data
        self.session.put_remote("127.0.0.1", ports[0], at, at, size, conn)
        tag = self.slot << 48 | self.life << 32 | self.number
        self.session.ctrl_send(self.next, tag)
        while True:
            answer = self.session.ctrl_recv(self.next, timeout=TIMEOUT)
            if answer == tag:
                break
            if answer >> 32 & 0xffff == self.life and answer & 0xffffffff >= self.number:
                self.violation("sent tag %x, was answered %x" % (tag, answer))
        self.log.add("tags", "put and tag", size)

    def receive(self):
        before = (self.me + 3) % 4
        try:
            tag = self.session.ctrl_recv(before, timeout=0.5)
        except (hmc.DeadlineExceeded, hmc.NotFound, hmc.PeerLost):
            self.over.wait(0.05)
            return
        slot, number = tag >> 48, tag & 0xffffffff
        size = 1 + number * 37 % PART
        at = self.place(before, slot)
        if bytes(self.bytes[at:at + size]) != pattern(number, size):
            self.violation("%d bytes are not those of tag %x" % (size, tag))
        try:
            self.session.ctrl_send(before, tag)
        except hmc.HMCError as error:
            self.log.failed("tags", before, error)

    @staticmethod
    def place(rank, slot):
        return (rank * LIVES + slot % LIVES) * PART

    def end(self):
        self.stop()
        self.session.close()


class PoolCopies(Loop):
    """A member of a pool that copies into its own part of others' slots, and back."""

    def __init__(self, me, life, log, watch, pause, store):
        super().__init__("pool", me, life, log, watch, pause)
        self.store = store
        self.pool = None
        self.number = 0

    def steps(self):
        return [self.copy]

    def failed(self, error):
        self.log.failed("pool", -1, error)
        if "join again" in str(error):
            self.pool = None

    def join(self):
        self.pool = hmc.Pool(self.store, host_size=SLOT, lease=LEASE, heartbeat=LEASE / 10, timeout=6 * TIMEOUT,
                             secret="of the soak")
        self.rank = self.pool.rank
        self.log.add("pool", "join", 0)

    def copy(self):
        if self.pool is None:
            self.join()
        self.events()
        others = [rank for rank in self.pool.ranks if rank != self.rank]
        if not others:
            self.over.wait(0.05)
            return
        if self.random.randrange(5000) == 0:
            self.log.say(leaves=True)  # copies of others fail with that
            pool, self.pool = self.pool, None
            pool.leave(timeout=TIMEOUT)
            self.log.add("pool", "leave", 0)
            return
        self.there_and_back(self.random.choice(others))

    def events(self):
        """Who came and went, so that the queue does not grow."""
        while True:
            try:
                event = self.pool.next_event(timeout=0)
            except hmc.DeadlineExceeded:
                return
            if event.kind == "left":
                self.log.add("pool", "saw a member leave", 0)

    def there_and_back(self, rank):
        part = SLOT // 8
        size = self.random.choice([8, 4 * KIB, part])
        at = self.rank * part
        self.number += 1
        data = pattern(self.number, min(size, 8 * KIB))
        data *= size // len(data)
        back = bytearray(size)
        there = self.pool.slot(rank)[at:at + size]
        self.pool.copy(there, data, timeout=TIMEOUT)
        self.pool.copy(back, there, timeout=TIMEOUT)
        # A member that came in its place has zeros there, and the next holder of our rank
        # nothing yet.
        if bytes(back) != data and any(back):
            self.violation("%d bytes came back from rank %d changed" % (size, rank))
        self.log.add("pool", "copy there and back", 2 * size)

    def end(self):
        self.stop()
        try:
            if self.pool:
                self.pool.leave(timeout=TIMEOUT)
        except hmc.HMCError as error:
            self.log.failed("pool", -1, error)
