"""Prefill to decode: the pages of a KV cache, one call for each layer.

    python kv_cache.py            # the decode side, which starts the prefill side
    python kv_cache.py ADDRESS    # the prefill side

Each side keeps its pages in one large allocation, with its own page table. The prefill side puts
each layer's pages where the decode side's table says, without any CPU work at the decode side.
"""

import subprocess
import sys

import numpy

import hmc

LAYERS, PAGES, PAGE = 8, 512, 16 * 1024
REQUEST = 100  # pages of the request that moves


def allocate_cache(node):
    return node.allocate(name="cache", dtype="uint8", shape=(LAYERS, PAGES, PAGE))


def content(layer):
    """What the pages of the request hold in that layer."""
    return numpy.random.default_rng(layer).integers(0, 256, (REQUEST, PAGE), numpy.uint8)


def decode():
    table = numpy.random.default_rng(100).permutation(PAGES)[:REQUEST]
    with hmc.Node(listen="tcp://127.0.0.1:0") as node:
        pages = allocate_cache(node).numpy()
        node.register(table, name="page table", access="r")
        prefill = subprocess.Popen([sys.executable, __file__, node.address])
        for _ in range(LAYERS):
            layer = int(node.next_note(timeout=120).data)  # all of its pages are here
            assert numpy.array_equal(pages[layer, table], content(layer))
        assert prefill.wait(timeout=120) == 0
    print("decoded with {} layers of {} pages".format(LAYERS, REQUEST))


def prefill(address):
    table = numpy.random.default_rng(200).permutation(PAGES)[:REQUEST]
    with hmc.Node() as node:
        cache = allocate_cache(node)
        peer = node.connect(address)
        remote, their_table = peer.open("cache"), peer.open("page table")
        theirs = numpy.empty(their_table.shape, their_table.dtype)
        their_table.get(theirs)
        for layer in range(LAYERS):
            cache.numpy()[layer, table] = content(layer)  # the model computes
            here, there = (layer * PAGES + table) * PAGE, (layer * PAGES + theirs) * PAGE
            remote.put_blocks(cache, here, there, PAGE, note=str(layer).encode())
        print("{} pages by {}".format(LAYERS * REQUEST, remote.path), flush=True)


if __name__ == "__main__":
    prefill(sys.argv[1]) if len(sys.argv) > 1 else decode()
