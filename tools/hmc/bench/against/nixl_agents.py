"""What NIXL does between two processes of one host, through its Python package:

    python3 nixl_agents.py HERE THERE SIZE...

HERE and THERE are where the two sides' memory lies: "cpu" or "cuda:0". Prints lines "OPERATION MODE SIZE
NANOSECONDS": the time of one operation, the median of several batches. MODE is "one" when each operation is
waited for, "many" when several are under way.
"""

import ctypes
import mmap
import multiprocessing
import os
import statistics
import sys
import time

BATCHES = 9
MOST_IN_FLIGHT = 16
MOST_BYTES_IN_FLIGHT = 32 << 20
PATIENCE_S = 30
BATCH_S = 0.02
WARM_UP = 3


def leave():
    """Ends the process. NIXL 1.5.1 crashes in its clean-up, also when nothing was transferred."""
    sys.stdout.flush()
    os._exit(0)


class Memory:
    """Bytes in host memory, or in that of a GPU."""

    def __init__(self, place, size):
        if place == "cpu":
            self.kind, self.device = "DRAM", 0
            self.owner = mmap.mmap(-1, size)
            self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.owner))
        else:
            import torch

            self.kind, self.device = "VRAM", int(place.partition(":")[2] or 0)
            self.owner = torch.zeros(size, dtype=torch.uint8, device=place)
            torch.cuda.synchronize(self.device)
            self.address = self.owner.data_ptr()


class Side:
    """An agent with one piece of registered memory."""

    def __init__(self, name, place, size):
        from nixl._api import nixl_agent

        self.memory = Memory(place, size)  # first, so that UCX finds a CUDA context
        self.agent = nixl_agent(name)
        self.agent.register_memory(
            [(self.memory.address, size, self.memory.device, "")], self.memory.kind
        )

    def about(self):
        memory = self.memory
        return self.agent.get_agent_metadata(), (memory.address, memory.device, memory.kind)


def serve(connection, place, size):
    """The other process: its memory is there until the connection ends."""
    side = Side("target", place, size)
    connection.send(side.about())
    try:
        connection.recv()
    except EOFError:
        pass
    leave()


class Origin(Side):
    def __init__(self, place, size, about):
        super().__init__("origin", place, size)
        metadata, (self.remote, self.remote_device, self.remote_kind) = about
        self.peer = self.agent.add_remote_agent(metadata)

    def transfer(self, operation, size):
        """A transfer of everything, to be posted again and again."""
        here = self.agent.get_xfer_descs(
            [(self.memory.address, size, self.memory.device)], self.memory.kind
        )
        there = self.agent.get_xfer_descs([(self.remote, size, self.remote_device)], self.remote_kind)
        return self.agent.initialize_xfer(operation, here, there, self.peer)

    def run(self, transfers):
        """Posts all of them, and waits for all."""
        pending = [one for one in transfers if self.post(one)]
        if not pending:
            return
        until = time.monotonic() + PATIENCE_S
        while pending:
            pending = [one for one in pending if self.is_under_way(one)]
            if time.monotonic() > until:
                raise TimeoutError("a transfer of NIXL did not end in %d s" % PATIENCE_S)

    def post(self, transfer):
        return self.under_way(self.agent.transfer(transfer))

    def is_under_way(self, transfer):
        return self.under_way(self.agent.check_xfer_state(transfer))

    @staticmethod
    def under_way(state):
        if state == "ERR":
            raise RuntimeError("a transfer of NIXL failed")
        return state != "DONE"


def nanoseconds_each(origin, transfers):
    """The median of several batches, each long enough for the clock."""
    for _ in range(WARM_UP):
        origin.run(transfers)
    times = []
    for _ in range(BATCHES):
        rounds = 0
        started = now = time.perf_counter()
        while rounds == 0 or now - started < BATCH_S:
            origin.run(transfers)
            rounds += 1
            now = time.perf_counter()
        times.append((now - started) / (rounds * len(transfers)))
    return statistics.median(times) * 1e9


def measure(origin, size):
    for name, operation in (("put", "WRITE"), ("get", "READ")):
        count = min(MOST_IN_FLIGHT, max(1, MOST_BYTES_IN_FLIGHT // size))
        transfers = [origin.transfer(operation, size) for _ in range(count)]
        for mode, used in (("one", transfers[:1]), ("many", transfers)):
            each = nanoseconds_each(origin, used)
            print("%s %s %d %.1f" % (name, mode, size, each), flush=True)
        for transfer in transfers:
            transfer.release()


def main(here, there, sizes):
    largest = max(sizes)
    processes = multiprocessing.get_context("spawn")  # fork() and CUDA do not go together
    ours, theirs = processes.Pipe()
    target = processes.Process(target=serve, args=(theirs, there, largest), daemon=True)
    target.start()
    theirs.close()
    if not ours.poll(PATIENCE_S):
        raise TimeoutError("the other process of NIXL did not start in %d s" % PATIENCE_S)
    origin = Origin(here, largest, ours.recv())
    for size in sizes:
        measure(origin, size)
    ours.close()
    target.join(PATIENCE_S)
    leave()


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], [int(size) for size in sys.argv[3:]])
