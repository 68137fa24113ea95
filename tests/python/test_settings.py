"""Every variable of the environment is the default of its option, for every class that has it."""

import json
import os
import subprocess
import sys

import pytest

import hmc

WRONG = "nonsense"


def settings():
    """What `hmc info` says of each variable while all of them are wrong."""
    def info(environment):
        done = subprocess.run([sys.executable, "-m", "hmc", "info", "--json"],
                              stdout=subprocess.PIPE, universal_newlines=True, timeout=240,
                              env=environment, check=True)
        return json.loads(done.stdout)["settings"]

    clean = {name: value for name, value in os.environ.items() if not name.startswith("HMC_")}
    names = [one["variable"] for one in info(clean)]
    return info(dict(clean, **{name: WRONG for name in names}))


def make_node():
    with hmc.Node():
        pass


def make_pool():
    with hmc.Pool(serve_store=True, secret=None):
        pass


def make_communicator():
    hmc.Communicator(hmc.ConnBuffer(0, 4096, hmc.MemoryType.CPU), 1)


FACES = {"Node": make_node, "Pool": make_pool, "documented classes": make_communicator}


@pytest.fixture(name="environment")
def environment_of_a_pool(monkeypatch, tmp_path):
    """One in which a Pool can be made without naming a store."""
    for name, value in (("STORE", "unix://%s" % (tmp_path / "store")), ("RANK", "0"),
                        ("SIZE", "1")):
        monkeypatch.setenv("HMC_POOL_" + name, value)
    return monkeypatch


def test_whoever_reads_a_variable_refuses_what_makes_no_sense(environment):
    for make in FACES.values():
        make()
    checked = 0
    for setting in settings():
        # Whether a file can be read shows when it is opened, and most need no such file.
        if "problem" not in setting or "No such file" in setting["problem"]:
            continue
        checked += 1
        with environment.context() as changed:
            changed.setenv(setting["variable"], WRONG)
            for face, make in FACES.items():
                if face not in setting["readBy"].split(", "):
                    make()
                    continue
                with pytest.raises(hmc.HMCError, match=setting["variable"]):
                    make()
    assert checked > 10


def test_transports_are_those_of_the_environment_unless_they_are_named(environment):
    environment.setenv("HMC_TRANSPORTS", "tcp")
    with hmc.Node() as node:
        assert [one.transport for one in node.transports()] == ["tcp"]
    with hmc.Node(transports="ipc") as node:
        assert [one.transport for one in node.transports()] == ["ipc"]


def test_the_secret_is_that_of_the_environment_unless_it_is_named(environment):
    with hmc.Node(secret="sesame", listen="tcp://127.0.0.1:0") as owner:
        environment.setenv("HMC_SECRET", "sesame")
        with hmc.Node() as node:
            node.connect(owner.address)
        with hmc.Node(secret="simsim") as node, pytest.raises(hmc.HMCError):
            node.connect(owner.address)


def test_a_short_lease_of_the_environment_needs_no_other_heartbeat(environment):
    environment.setenv("HMC_LEASE_MS", "500")
    make_node()
    with pytest.raises(hmc.HMCError):
        hmc.Node(lease=0.5)  # which is shorter than the heartbeat that goes with it
