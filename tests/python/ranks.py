"""Processes that are the ranks of one group."""

from peers import Child

HEAD = """
import os, sys, hmc
from hmc import collective
from hmc.group import BARRIER, READY, TAKEN
sess = hmc.create_session(buffer_size=1 << 20)
"""
# What a launcher says is all that they need to know.
MEET = """
group = collective.init_group(session=sess)
rank, world = group.rank, group.world
"""
END = """
collective.barrier(group)
print("done")
"""


def placed(rank, world, store):
    """What a rank is told by `hmc pool run`."""
    return {"HMC_POOL_STORE": store, "HMC_POOL_RANK": str(rank), "HMC_POOL_SIZE": str(world)}


class Ranks:
    """Processes that run one program. Each has its own arguments or variables."""

    def __init__(self, code, world=0, told=lambda rank: {}, arguments=lambda rank: ()):
        self.code = code
        self.children = {}
        for rank in range(world):
            self.start(rank, *arguments(rank), **told(rank))

    def start(self, rank, *arguments, **variables):
        self.children[rank] = Child(self.code, *arguments, **variables)

    def __getitem__(self, rank):
        return self.children[rank]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for child in self.children.values():
            child.__exit__()

    def finish(self):
        """All must end well; else what each of them says is told."""
        ends = {rank: child.finish() for rank, child in self.children.items()}
        failed = ["rank %d: %s %s" % (rank, end, self[rank].errors)
                  for rank, end in sorted(ends.items()) if end[0] != 0]
        assert not failed, "\n".join(failed)


def run_all(code, world, tmp_path, told=lambda rank: {}, **options):
    store = "unix://%s/store" % tmp_path
    with Ranks(code, world, lambda rank: {**placed(rank, world, store), **told(rank)},
               **options) as ranks:
        ranks.finish()
