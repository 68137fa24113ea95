"""Members of a pool that are processes of their own."""

import contextlib
import json

from peers import PATIENCE, Child, free_port

SIZE = 4 << 20

# A member that runs the statement of each line, with `pool` and the modules in scope.
MEMBER = """
import json, sys
import numpy as np
import hmc
options = json.loads(sys.argv[2])
with hmc.Pool(sys.argv[1], **options) as pool:
    print(pool.rank)
    for line in sys.stdin:
        try:
            exec(compile(line, line, "single"))
        except hmc.HMCError as error:
            print(type(error).__name__, error)
        else:
            print("done")
"""


@contextlib.contextmanager
def member(store, **options):
    """A process that is in the pool, and its rank."""
    with Child(MEMBER, store, json.dumps({"host_size": SIZE, "timeout": PATIENCE, **options})) as child:
        yield child, int(child.answer())


def tell(child, line):
    """Let it run a statement; the exception that this raised, or "done"."""
    return child.ask(line)


def new_store():
    return "tcp://127.0.0.1:%d" % free_port()
