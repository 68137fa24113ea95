"""A small object store: one process keeps arrays, others put, list, fetch and delete them by name.

    python object_store.py                  # the store, which starts a writer and then a reader
    python object_store.py ADDRESS write    # or: read
"""
import json
import subprocess
import sys

import numpy

import hmc

def keep():
    with hmc.Node(listen="tcp://127.0.0.1:0") as node:
        @node.serve
        def create(data):
            name, dtype, shape = json.loads(data)
            return b"%d" % node.allocate(name=name, dtype=dtype, shape=shape).nbytes
        @node.serve
        def delete(data):
            return node.unregister(data.decode()) or b""
        for role in ("write", "read"):
            subprocess.run([sys.executable, __file__, node.address, role], check=True, timeout=60)

class Objects:
    """What the store keeps, as a dictionary of arrays."""
    def __init__(self, store):
        self.store = store
    def __setitem__(self, name, array):
        self.store.call("create", json.dumps([name, str(array.dtype), array.shape]).encode())
        self.store.open(name).put(array)
    def __getitem__(self, name):
        kept = self.store.open(name)
        array = numpy.empty(kept.shape, kept.dtype)
        kept.get(array)
        return array

def use(address, role):
    with hmc.Node() as node:
        store = node.connect(address)
        objects, tokens = Objects(store), numpy.arange(1000000)
        if role == "write":
            objects["tokens"], objects["half"], objects["extra"] = tokens, tokens / 2, tokens[:3]
            store.call("delete", b"extra")
        else:
            assert numpy.array_equal(objects["tokens"], tokens) and objects["half"][3] == 1.5
            print("fetched", ", ".join(region.name for region in store.regions()))

use(*sys.argv[1:]) if len(sys.argv) > 1 else keep()
