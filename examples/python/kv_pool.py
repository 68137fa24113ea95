"""A KV-cache pool: processes put blocks by their hash, and any of them fetches any block.

Every worker brings memory for blocks. The index is a table of (hash, address) in rank 0's slot: a
block has the same address in every process, so the table needs nothing but numbers. Each worker
writes rows of its own; readers look at the whole table.
"""

import hashlib
import multiprocessing
import socket

import numpy

import hmc

WORKERS, BLOCKS, BLOCK = 3, 8, 64 * 1024  # BLOCKS of each worker
ROW = numpy.dtype([("hash", numpy.uint64), ("address", numpy.uint64)])
PROMPTS = ["prompt %d" % number for number in range(WORKERS * BLOCKS)]


def hash_of(prompt):
    return numpy.frombuffer(hashlib.sha256(prompt.encode()).digest()[:8], numpy.uint64)[0]


def content(prompt):
    """What the model would compute for it."""
    return numpy.random.default_rng(hash_of(prompt)).integers(0, 256, BLOCK, numpy.uint8)


class BlockPool:
    def __init__(self, pool):
        self.pool, self.used = pool, 0
        self.table = numpy.asarray(pool.slot(0)).view(ROW)[: len(PROMPTS)]

    def put(self, prompt, block):
        place = self.pool.slot(self.pool.rank)[self.used * BLOCK : (self.used + 1) * BLOCK]
        self.pool.copy(place, block)
        row = self.table[(self.pool.rank - 1) * BLOCKS + self.used]
        row["address"] = place.address
        row["hash"] = hash_of(prompt)  # last: who sees it finds the block
        self.used += 1

    def fetch(self, prompt):
        found = numpy.flatnonzero(self.table["hash"] == hash_of(prompt))
        if len(found) == 0:
            return None
        block = numpy.empty(BLOCK, numpy.uint8)
        self.pool.copy(block, int(self.table["address"][found[0]]))
        return block


def work(store, rank, everybody):
    with hmc.Pool(store, rank=rank, host_size=BLOCKS * BLOCK) as pool:
        blocks = BlockPool(pool)
        for prompt in PROMPTS[(rank - 1) * BLOCKS : rank * BLOCKS]:
            blocks.put(prompt, content(prompt))
        everybody.wait(120)
        for prompt in PROMPTS:
            assert numpy.array_equal(blocks.fetch(prompt), content(prompt))
        assert blocks.fetch("never seen") is None
        everybody.wait(120)  # others may still fetch ours


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as probe:
        store = "tcp://127.0.0.1:%d" % probe.getsockname()[1]
    context = multiprocessing.get_context("spawn")
    everybody = context.Barrier(WORKERS)
    with hmc.Pool(store, capacity=WORKERS + 1, host_size=1 << 20, serve_store=True):
        workers = [context.Process(target=work, args=(store, rank, everybody))
                   for rank in range(1, WORKERS + 1)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(120)
        assert [worker.exitcode for worker in workers] == [0] * WORKERS
    print("{} workers put {} blocks and fetched all of them".format(WORKERS, len(PROMPTS)))
