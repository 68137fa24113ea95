"""A trainer pushes its weights to three workers after each step; each starts as weights.py ADDRESS."""
import subprocess
import sys

import hmc

SHAPES = {"embedding": (20000, 128), "head": (128, 20000)}
WORKERS, STEPS = 3, 4

def allocate(node):
    return {name: node.allocate(name=name, dtype="float32", shape=SHAPES[name]) for name in SHAPES}

def work(address):
    with hmc.Node() as node:
        weights = allocate(node)
        trainer = node.connect(address)
        for step in range(STEPS):
            trainer.notify(b"ready")
            assert node.next_note(timeout=60).data == b"step %d" % step  # all weights are here
            assert all((region.numpy() == step).all() for region in weights.values())

def train():
    with hmc.Node(listen="tcp://127.0.0.1:0") as node:
        weights, push = allocate(node), None
        workers = [subprocess.Popen([sys.executable, __file__, node.address]) for _ in range(WORKERS)]
        for step in range(STEPS):
            peers = [node.next_note(timeout=60).peer for _ in workers]  # all are ready
            push = push or node.prepare([(weights[name], peer.open(name)) for peer in peers for name in SHAPES])
            push.put(note=b"step %d" % step)
            for region in weights.values():
                region.numpy()[:] += 1  # the optimizer
        assert [worker.wait(timeout=60) for worker in workers] == [0] * WORKERS
    print("pushed", STEPS, "steps to", WORKERS, "workers")

work(sys.argv[1]) if len(sys.argv) > 1 else train()
