"""Prefill to decode: the pages of a KV cache, one transfer and one note for each layer.

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


def page_offsets(layer, pages):
    return (layer * PAGES + pages).astype(numpy.int64) * PAGE


def content(layer):
    """What the pages of the request hold in that layer."""
    return numpy.random.default_rng(layer).integers(0, 256, (REQUEST, PAGE), numpy.uint8)


def decode():
    table = numpy.random.default_rng(100).permutation(PAGES)[:REQUEST]
    with hmc.Node(listen="tcp://127.0.0.1:0") as node:
        cache = node.allocate(LAYERS * PAGES * PAGE, name="cache")
        pages = numpy.asarray(cache).reshape(LAYERS, PAGES, PAGE)
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
        cache = node.allocate(LAYERS * PAGES * PAGE)
        pages = numpy.asarray(cache).reshape(LAYERS, PAGES, PAGE)
        peer = node.connect(address)
        remote = peer.open("cache")
        theirs = numpy.empty(REQUEST, dtype=numpy.int64)
        peer.open("page table").get(theirs)
        under_way = []
        for layer in range(LAYERS):
            pages[layer, table] = content(layer)  # the model computes
            here, there = page_offsets(layer, table), page_offsets(layer, theirs)
            under_way.append(remote.start_put_blocks(cache, here, there, PAGE))
        for layer, transfer in enumerate(under_way):
            transfer.wait(timeout=60)
            peer.notify(str(layer).encode())
        print("{} pages by {}".format(LAYERS * REQUEST, remote.path), flush=True)


if __name__ == "__main__":
    prefill(sys.argv[1]) if len(sys.argv) > 1 else decode()
