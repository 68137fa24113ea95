"""The wheel of MemFabric's packages: what it holds, and that it works where nothing else is."""

import os
import pathlib
import subprocess
import sys
import zipfile

import pytest

import documents
import memfabric_hybrid
from peers import PATIENCE

sys.path.insert(0, str(documents.ROOT / "python"))
from build_backend import archive, memfabric  # noqa: E402

USE = """
import mf_adapter, memfabric_hybrid, mf_smem
from mf_smem import bm
mf_smem.initialize()
config = bm.BmConfig()
config.rank_id = 0
try:
    bm.initialize("tcp://127.0.0.1:80", 1, 0, config)
except RuntimeError as error:
    print(error)
print(mf_smem.__version__, memfabric_hybrid.get_lib_path())
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    library = os.path.join(memfabric_hybrid.get_lib_path(), "libmf_smem.so")
    return pathlib.Path(memfabric.write_wheel(library, str(tmp_path_factory.mktemp("dist"))))


def test_holds_three_packages_and_the_library(wheel):
    assert wheel.name == "memfabric_hybrid-{}-py3-none-{}.whl".format(
        archive.version(), archive.platform_tag())
    names = set(zipfile.ZipFile(wheel).namelist())
    sources = {str(path.relative_to(documents.ROOT / "python/memfabric"))
               for path in (documents.ROOT / "python/memfabric").glob("*/*.py")}
    assert sources <= names
    assert {"mf_smem/lib/libmf_smem.so", "mf_smem/VERSION",
            "memfabric_hybrid/include/smem/host/smem_trans.h"} <= names
    assert not [name for name in names if name.startswith("hmc/")]


def test_installs_and_works_in_an_empty_environment(wheel, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")],
                   check=True)
    python = str(tmp_path / "venv/bin/python")
    found = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
                           stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    # With this environment's pip: putting one into the other takes seconds.
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps",
                    "--no-compile", "--disable-pip-version-check", "--target", found, str(wheel)],
                   check=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run([python, "-c", USE], env=kept, cwd="/", stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout
    sentence, facts = done.stdout.splitlines()
    assert 'has the port "80"' in sentence
    assert facts.split() == [archive.version(), os.path.join(found, "mf_smem", "lib")]
