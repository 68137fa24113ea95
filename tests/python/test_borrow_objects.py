"""tests/borrow_objects.py, which saves the wheel's tests a compilation: what it takes, and what not."""

import json
import os
import shutil
import subprocess
import sys

import pytest

import documents

COMPILER = shutil.which("c++")
NINJA = """
rule cxx
  command = $words
  deps = gcc
  depfile = a.d
build a.o: cxx {source}/a.cc
  words = {words}
"""

pytestmark = pytest.mark.skipif(not COMPILER or not shutil.which("ninja"),
                                reason="needs c++ and ninja")


class Project:
    """A file and a header, and a build folder."""

    def __init__(self, source):
        self.source = source
        self.build = source / "build"
        self.build.mkdir(parents=True)
        (source / "a.h").write_text("constexpr int kAnswer = 42;\n")
        (source / "a.cc").write_text('#include "a.h"\nint answer() { return kAnswer; }\n')
        (self.build / "CMakeCache.txt").write_text(
            "CMAKE_HOME_DIRECTORY:INTERNAL={}\n".format(source))

    def words(self, *flags):
        return [COMPILER, "-I{}".format(self.source), *flags, "-MD", "-MT", "a.o", "-MF", "a.d",
                "-o", "a.o", "-c", str(self.source / "a.cc")]

    def make(self):
        """Compiles, as a build folder of ninja does."""
        command = " ".join(self.words("-O1", "-g1"))
        (self.build / "build.ninja").write_text(NINJA.format(source=self.source, words=command))
        (self.build / "compile_commands.json").write_text(
            json.dumps([{"command": "ccache " + command, "file": "a.cc"}]))
        subprocess.run(["ninja"], cwd=str(self.build), check=True, stdout=subprocess.DEVNULL)
        return self

    def borrow(self, lender, *flags):
        """Compiles with the launcher; returns whether it had to."""
        launcher = [sys.executable, str(documents.ROOT / "tests/borrow_objects.py")]
        listed = self.build / "compiled.txt"
        subprocess.run([*launcher, str(lender.build), *self.words(*flags)], cwd=str(self.build),
                       check=True, stderr=subprocess.DEVNULL)
        compiled = listed.exists()
        if compiled:
            listed.unlink()
        assert (self.build / "a.o").exists()
        return compiled


@pytest.fixture
def lender(tmp_path):
    return Project(tmp_path / "lender").make()


@pytest.fixture
def copy(tmp_path):
    return Project(tmp_path / "copy")


def test_takes_the_object_of_the_same_files_and_flags(lender, copy):
    assert not copy.borrow(lender, "-O2", "-DNDEBUG")
    assert (copy.build / "a.o").read_bytes() == (lender.build / "a.o").read_bytes()
    assert (copy.build / "a.d").read_text().startswith(str(copy.build / "a.o") + ":")


def test_compiles_where_a_header_or_a_flag_differs(lender, copy):
    assert copy.borrow(lender, "-DELSE")
    (copy.source / "a.h").write_text("constexpr int kAnswer = 43;\n")
    assert copy.borrow(lender)


def test_compiles_what_the_lender_would_compile_again(lender, copy):
    for project in (lender, copy):
        (project.source / "a.h").write_text("constexpr int kAnswer = 43;\n")
    made = (lender.build / "a.o").stat().st_mtime
    os.utime(str(lender.source / "a.h"), (made + 10, made + 10))
    assert copy.borrow(lender)


def test_a_header_that_is_missing_in_the_copy_is_an_error(lender, copy):
    (copy.source / "a.h").unlink()
    with pytest.raises(subprocess.CalledProcessError):
        copy.borrow(lender)


def test_compiles_where_there_is_nothing_to_borrow(tmp_path, copy):
    assert copy.borrow(Project(tmp_path / "empty"))
