"""Runs cmake for the wheel."""

import os
import re
import shlex
import shutil
import sys

from . import archive, needs, progress


def build(folder):
    """Compiles the package into a folder. CMAKE_ARGS adds to the configuration."""
    configure = ["cmake", "-S", archive.ROOT, "-B", folder, "-DCMAKE_BUILD_TYPE=Release",
                 "-DBUILD_PYTHON_MOD=ON", "-DPython3_EXECUTABLE=" + sys.executable]
    if shutil.which("ninja") and "CMAKE_GENERATOR" not in os.environ:
        configure += ["-G", "Ninja"]
    if needs.pybind11_of_pip():
        configure.append("-Dpybind11_DIR=" + needs.pybind11_of_pip())
    _configure(configure + shlex.split(os.environ.get("CMAKE_ARGS", "")))
    jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", str(len(os.sched_getaffinity(0))))
    _run(["cmake", "--build", folder, "-j", jobs])


def install(folder, tree):
    """Lays out in the folder `tree` what the wheel holds."""
    _run(["cmake", "--install", folder, "--prefix", tree, "--component", "python", "--strip"])


def _configure(command):
    """What is missing is the last thing that is said, not cmake's remarks after it."""
    status, printed = progress.run(command)
    if status != 0:
        missing = re.search(r"HMC needs .*?(?=\n\S|\n\n)", printed, re.S)
        sys.exit(" ".join(missing[0].split()) if missing else "hmc: cmake failed, see above")


def _run(command):
    if progress.run(command)[0] != 0:
        sys.exit("hmc: `{}` failed, see above".format(" ".join(command)))
