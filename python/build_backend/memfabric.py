"""Packs the wheel of MemFabric's Python interface: mf_smem, memfabric_hybrid and mf_adapter.

    python3 -m build_backend.memfabric build/lib/libmf_smem.so dist

It is Python over that library alone, so that one wheel serves every Python from 3.8 on.
"""

import glob
import os
import shutil
import subprocess
import sys
import tempfile

from . import archive

NAME = "memfabric_hybrid"
PACKAGES = ("mf_smem", "memfabric_hybrid", "mf_adapter")
SOURCES = os.path.join(archive.ROOT, "python", "memfabric")
HEADERS = os.path.join(archive.ROOT, "include", "smem")

METADATA = """Metadata-Version: 2.1
Name: {name}
Version: {version}
Summary: MemFabric's Big Memory, Share Memory and transfer engine, over HMC
License: Apache-2.0
Keywords: memory-pool,shared-memory,rdma,kv-cache
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Classifier: Topic :: System :: Distributed Computing
Requires-Python: >=3.8

Programs that import mf_smem, memfabric_hybrid or mf_adapter run with this package on any Linux
host, over host memory and CUDA. help(mf_smem) says how.
"""


def tag():
    return "py3-none-" + archive.platform_tag()


def lay_out(library, tree):
    """What the wheel holds, below `tree`."""
    for package in PACKAGES:
        os.makedirs(os.path.join(tree, package))
        for path in glob.glob(os.path.join(SOURCES, package, "*.py")):
            shutil.copy(path, os.path.join(tree, package))
    shutil.copytree(HEADERS, os.path.join(tree, "memfabric_hybrid", "include", "smem"))
    with open(os.path.join(tree, "mf_smem", "VERSION"), "w", encoding="utf-8") as file:
        file.write(archive.version() + "\n")
    inside = os.path.join(tree, "mf_smem", "lib", "libmf_smem.so")
    os.makedirs(os.path.dirname(inside))
    shutil.copy(library, inside)
    if shutil.which("strip"):
        subprocess.run(["strip", "--strip-unneeded", inside], check=True)


def write_wheel(library, folder, more_texts=None):
    """Returns the wheel's path."""
    os.makedirs(folder, exist_ok=True)
    texts = {"METADATA": METADATA.format(name=NAME, version=archive.version()),
             "WHEEL": archive.about_wheel(tag()), "LICENSE": archive.read("LICENSE"),
             **(more_texts or {})}
    with tempfile.TemporaryDirectory(prefix="memfabric-wheel-") as tree:
        lay_out(library, tree)
        return os.path.join(folder, archive.pack(tree, folder, NAME, tag(), texts))


if __name__ == "__main__":
    print(write_wheel(*sys.argv[1:3]))
