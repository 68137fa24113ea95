"""The package for the newest Python of this machine, where the tests run with an older one."""

import glob
import os
import re
import subprocess
import sys

import pytest

import documents

FOLDERS = ["/usr/local/bin", "/usr/bin", os.path.expanduser("~/.pyenv/versions/*/bin")]
ABOUT = ("import os, sysconfig; print(sysconfig.get_config_var('LDVERSION'), "
         "os.path.exists(os.path.join(sysconfig.get_path('include'), 'Python.h')))")


def pythons():
    """(version, path) of every interpreter that has headers, oldest first."""
    found = {}
    for folder in os.environ["PATH"].split(os.pathsep) + FOLDERS:
        for path in glob.glob(folder + "/python3.*"):
            named = re.search(r"/python3\.(\d+)$", path)
            if not named:
                continue
            done = subprocess.run([path, "-c", ABOUT], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True)
            if done.stdout.split() == ["3." + named[1], "True"]:
                found.setdefault((3, int(named[1])), path)
    return sorted(found.items())


def lacks(python, environment):
    """What pip would have to download first."""
    ask = "import build_backend; print(*build_backend.get_requires_for_build_wheel())"
    said = subprocess.run([python, "-c", ask], cwd=str(documents.ROOT / "python"), text=True,
                          env=environment, stdout=subprocess.PIPE, check=True)
    return said.stdout.strip()


def test_the_wheel_builds_and_imports_there(tmp_path):
    newer = [path for version, path in pythons() if version > sys.version_info[:2]]
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("PYTHON")}
    able = [path for path in newer if not lacks(path, environment)]
    if not able:
        pytest.skip("no newer Python with headers and a pybind11 that knows it; looked at " +
                    (", ".join(newer) or "none"))
    # Only the module differs from Python to Python; the library is the one of the tests' build folder.
    borrow = "{};{}".format(documents.ROOT / "tests/borrow_objects.py", os.environ["HMC_BUILD"])
    environment.update(CMAKE_CXX_COMPILER_LAUNCHER=borrow)
    subprocess.run([able[-1], "-m", "pip", "install", "-q", "--no-index", "--no-build-isolation",
                    "--target", str(tmp_path), str(documents.ROOT)], env=environment, check=True)
    environment["PYTHONPATH"] = str(tmp_path)
    done = subprocess.run([able[-1], "-c", "import hmc; print(hmc.__version__, hmc.__file__)"],
                          env=environment, stdout=subprocess.PIPE, text=True, check=True)
    version, file = done.stdout.split()
    assert version.count(".") == 2
    assert file.startswith(str(tmp_path))
