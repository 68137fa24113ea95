"""The types and the docstrings that users see, against the module that was built."""

import inspect
import os
import pydoc
import subprocess
import sys

import pytest

import hmc

CLASSES = [hmc.Node, hmc.Peer, hmc.Region, hmc.RemoteRegion, hmc.Transfer, hmc.Note,
           hmc.PathReport, hmc.PeerFacts, hmc.Grant, hmc.Prepared, hmc.RegionInfo,
           hmc.Pool, hmc.Slot, hmc.PoolTransfer, hmc.PoolEvent]

GOOD = """
import asyncio
from typing import List, Optional
import hmc


async def use(address: str) -> Optional[bytes]:
    with hmc.Node(name="me", listen="tcp://127.0.0.1:0", transports=["ipc", "tcp"]) as node:
        region: hmc.Region = node.register(bytearray(64), name="mine", access="rw")
        peer: hmc.Peer = node.connect(address, timeout=5)
        remote: hmc.RemoteRegion = peer.open("theirs")[8:16]
        remote.put(region[:8])
        transfer: hmc.Transfer = remote.start_get_blocks(region, [0], [0], 8)
        await transfer
        await asyncio.gather(transfer, remote.start_put(b"12345678"))
        hmc.wait_all([transfer], timeout=1)
        node.put([(b"abc", remote), [region, remote[1:]]], note=b"both")
        await node.start_get([(bytearray(8), remote)])
        again: hmc.Prepared = remote.prepare(region[:8])
        await again.start_put()
        made: hmc.Region = node.allocate(dtype="float32", shape=(2, 3))
        names: List[str] = [info.name for info in peer.regions()]
        print(names, made.numpy().sum(), made.dtype, remote.shape[0], len(again))
        reasons: List[str] = [path.reason for path in peer.explain() if path.usable]
        first: hmc.Transfer = hmc.wait_any([transfer])
        print(len(region), first.path, reasons, node.address)
        async for note in node.notifications():
            return note.data
    try:
        node.next_note()
    except hmc.PeerLost as error:
        print(error.code, error.status)
    with hmc.create_session(buffer_size=64, mem_type=hmc.MemoryType.CPU) as session:
        size: int = session.put("127.0.0.1", b"data", conn=hmc.ConnType.TCP)
        session.wait(session.put_nb("127.0.0.1", 5000, 0, 0, size))
        group: hmc.Group = hmc.init_group(session=session, my_ip="127.0.0.1", rank=0, world=1)
        hmc.collective.barrier(group)
    hmc.Pool(host_size=64).leave()
    with hmc.Pool("tcp://127.0.0.1:1", capacity=2, host_size=64, serve_store=True) as pool:
        slot: hmc.Slot = pool.slot(1)[:32]
        pool.copy(slot, b"data")
        pool.copy(slot.address, pool.base("host"), size=8, timeout=1)
        pool.copy_2d(slot, 8, bytearray(16), 4, width=4, rows=2)
        await pool.copy_async(bytearray(4), slot)
        copies: hmc.PoolTransfer = pool.start_copy([(slot, b"data"), (slot, slot.address, 8)])
        await asyncio.gather(copies, copies)
        failed: List[Optional[hmc.HMCError]] = copies.outcomes()
        print(len(slot), pool.ranks, failed, pool.next_event(timeout=1).kind)
        async for event in pool.events():
            print(event.rank, event.reason)
    return None
"""

BAD = """
import hmc
hmc.Node("positional")
hmc.Node(names="typo")
node = hmc.Node()
node.connect(5)
number: int = node.address
node.connect("x").open("y")[5]
hmc.create_session(size=5)
hmc.Nod()
hmc.Pool(5)
hmc.Pool("tcp://127.0.0.1:1", host=5)
hmc.Pool("x").copy(1)
hmc.Pool("x").slot("1")
"""


@pytest.fixture(scope="module")
def mypy(tmp_path_factory):
    """Runs a module of mypy; all runs share a cache.

    None reads torch, which takes twenty times as long as all the rest, for one call in hmc.bench.
    """
    pytest.importorskip("mypy")
    package = os.path.dirname(os.path.dirname(hmc.__file__))
    folder = tmp_path_factory.mktemp("mypy")
    settings = folder / "settings.ini"
    settings.write_text("[mypy]\n[mypy-torch.*]\nfollow_imports = skip\n")
    environment = dict(os.environ, MYPYPATH=package, MYPY_CACHE_DIR=str(folder))

    def run(module, *arguments):
        option = "--config-file" if module == "mypy" else "--mypy-config-file"
        command = [sys.executable, "-m", module, option, str(settings), *arguments]
        return subprocess.run(command, env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240)

    return run


def test_a_user_can_check_strictly(mypy, tmp_path):
    program = tmp_path / "good.py"
    program.write_text(GOOD)
    result = mypy("mypy", "--strict", "--follow-imports=silent", str(program))
    assert result.returncode == 0, result.stdout


def test_mistakes_of_users_are_found(mypy, tmp_path):
    program = tmp_path / "bad.py"
    program.write_text(BAD)
    result = mypy("mypy", "--strict", "--follow-imports=silent", str(program))
    lines = {int(line.split(":")[1]) for line in result.stdout.splitlines() if ": error:" in line}
    assert lines == {3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14}, result.stdout


def test_the_package_itself_is_typed_strictly(mypy):
    package = os.path.dirname(hmc.__file__)
    files = [os.path.join(package, name) for name in os.listdir(package) if name.endswith(".py")]
    result = mypy("mypy", "--strict", "--follow-imports=silent", *files)
    assert result.returncode == 0, result.stdout


# What stubs cannot say: pybind11's metaclass, that a class is not made by calling it, and, for a
# Python before 3.12, that it has a buffer. Modules that are their own stubs import for them. The
# members of MemoryType are made at run time. Where torch is missing, its backend cannot be imported.
UNSAID = r"""
hmc\._core\.[A-Z]\w*
hmc\.[A-Z]\w*
hmc\..*\.__init__
hmc\..*\.__buffer__
hmc\.[a-z_]+\.[A-Z]\w*
hmc\.[a-z_]+\._(Array|Conn)
hmc\.torch(_[a-z]+)?
hmc\.([a-z_]+\.)?MemoryType\.[A-Z_]+
"""


def test_the_stubs_are_what_the_module_is(mypy, tmp_path):
    unsaid = tmp_path / "unsaid"
    unsaid.write_text(UNSAID)
    result = mypy("mypy.stubtest", "hmc", "--allowlist", str(unsaid),
                  "--ignore-unused-allowlist")
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("name", sorted(hmc.__all__))
def test_everything_public_has_help(name):
    assert len(inspect.getdoc(getattr(hmc, name)) or "") > 5 or not callable(getattr(hmc, name))


@pytest.mark.parametrize("kind", CLASSES)
def test_every_method_shows_its_arguments_and_what_it_does(kind):
    for name, member in vars(kind).items():
        if name.startswith("_"):
            continue
        assert inspect.getdoc(member), name
        if callable(member):
            assert list(inspect.signature(getattr(kind, name)).parameters)[0] == "self", name
    assert kind.__module__ == "hmc"


def test_help_reads_well():
    text = pydoc.render_doc(hmc.RemoteRegion, renderer=pydoc.plaintext)
    assert "put(self, /, local, timeout=30, stream=None, note=None)" in text
    assert "Copy all bytes of `local` to the beginning of this region." in text
    assert "hmc._core" not in text
    text = pydoc.render_doc(hmc.Node, renderer=pydoc.plaintext)
    assert "register(self, obj, name='', access='rw')" in text
