"""What `import hmc` brings along."""

import subprocess
import sys

import pytest

import hmc


def test_has_a_version():
    assert hmc.__version__.count(".") == 2


def modules_after(code):
    """The names of the modules that are loaded then and were not before."""
    result = subprocess.run(
        [sys.executable, "-c", "import sys\nbefore = set(sys.modules)\n" + code +
         "\nprint('\\n'.join(set(sys.modules) - before))"],
        stdout=subprocess.PIPE, text=True, check=True, timeout=60)
    return result.stdout.split()


def test_only_the_standard_library_is_loaded():
    if sys.version_info < (3, 10):
        pytest.skip("this Python does not know its own modules")
    loaded = {name.split(".")[0] for name in modules_after("import hmc")}
    assert loaded - set(sys.stdlib_module_names) == {"hmc"}


def test_what_costs_time_is_loaded_when_it_is_used():
    heavy = {"numpy", "torch", "asyncio", "ctypes", "inspect", "typing", "dataclasses"}
    assert heavy.isdisjoint(modules_after("import hmc"))


def test_moving_bytes_needs_no_array_library():
    loaded = modules_after(
        "import hmc\n"
        "with hmc.Node(listen='tcp://127.0.0.1:0') as a, hmc.Node() as b:\n"
        "    target = a.allocate(64, name='x')\n"
        "    remote = b.connect(a.address).open('x')\n"
        "    remote.put(b'bytes')\n"
        "    remote.put_blocks(b'bytes', [0, 1], [5, 6], 1)\n"
        "    assert bytes(target[:7]) == b'bytesby'\n")
    assert {"numpy", "torch", "asyncio"}.isdisjoint(loaded)
