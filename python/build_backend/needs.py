"""What pip has to bring because this machine does not have it."""

import glob
import os
import re
import shutil
import subprocess
import sys

CMAKE = (3, 18)
# The first pybind11 for a Python, newest first; cmake/HmcNeeds.cmake has the same for plain builds.
PYBIND11 = [((3, 14), (3, 0)), ((3, 13), (2, 13)), ((3, 12), (2, 11)), ((3, 8), (2, 10))]


def from_pip():
    """The requirements that pip is asked for: none where the distribution's packages are there."""
    wanted = []
    if _cmake_version() < CMAKE:
        wanted.append("cmake>=" + _dotted(CMAKE))
    if not shutil.which("ninja") and not shutil.which("make"):
        wanted.append("ninja")
    if _pybind11_version() < _pybind11_needed():
        wanted.append("pybind11>=" + _dotted(_pybind11_needed()))
    return wanted


def pybind11_of_pip():
    """Where the pybind11 that Python can import has its CMake files, or None."""
    try:
        import pybind11
        return pybind11.get_cmake_dir()
    except ImportError:
        return None


def _pybind11_needed():
    return next(version for python, version in PYBIND11 if sys.version_info >= python)


def _pybind11_version():
    """Of the one that Python can import, else of the newest one that cmake would find by itself."""
    if pybind11_of_pip():
        return _version_in_folder(pybind11_of_pip())
    prefixes = os.environ.get("CMAKE_PREFIX_PATH", "").split(os.pathsep) + ["/usr/local", "/usr"]
    versions = [()]
    for prefix in filter(None, prefixes):
        for folder in ("lib", "share", "lib/*"):
            found = glob.glob(os.path.join(prefix, folder, "cmake/pybind11"))
            versions += [_version_in_folder(path) for path in found]
    return max(versions)


def _version_in_folder(folder):
    try:
        with open(os.path.join(folder, "pybind11ConfigVersion.cmake"), encoding="utf-8") as file:
            return _version_in(file.read(), "PACKAGE_VERSION")
    except OSError:
        return ()


def _cmake_version():
    if not shutil.which("cmake"):
        return ()
    said = subprocess.run(["cmake", "--version"], stdout=subprocess.PIPE, universal_newlines=True)
    return _version_in(said.stdout, "cmake version")


def _version_in(text, before):
    """The version that follows a word, as a tuple; () where there is none."""
    found = re.search(re.escape(before) + r'[\s"]+(\d+)\.(\d+)', text)
    return (int(found[1]), int(found[2])) if found else ()


def _dotted(version):
    return ".".join(map(str, version))
