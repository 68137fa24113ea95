"""Grants: what a peer may reach of a region, as bytes that can be handed on."""

import contextlib
import time

import pytest

import hmc
from node_peers import pair
from peers import PATIENCE


def test_a_grant_opens_a_part_of_a_region():
    with pair(["tcp"]) as (a, _, to_a):
        region = a.allocate(4096, name="mine")
        grant = region[1000:1010].grant(access="r", lifetime=3600)
        assert (grant.name, grant.nbytes, grant.access) == ("mine", 10, "r")
        assert 3500 < grant.expires - time.time() <= 3600
        memoryview(region)[1000:1010] = b"0123456789"
        remote = to_a.open(grant)
        here = bytearray(10)
        remote.get(here)
        assert here == b"0123456789" and remote.name == "mine" and len(remote) == 10
        with pytest.raises(hmc.PermissionDenied):
            remote.put(b"x")
        with pytest.raises(hmc.OutOfRange):
            remote[5:11]


def test_its_bytes_are_handed_on_and_narrowed():
    with pair(["ipc"]) as (a, b, to_a):
        region = a.allocate(4096, name="mine")
        token = region.grant().bytes
        assert isinstance(token, bytes)
        for form in (token, bytearray(token), memoryview(token), hmc.Grant(token)):
            assert len(to_a.open(form)) == 4096
        narrow = hmc.Grant(token).narrow(offset=100, nbytes=5, access="rw", peer=a.peer("b"))
        to_a.open(narrow.bytes).put(b"hello")
        assert bytes(region[100:105]) == b"hello"
        assert repr(narrow) == '<hmc.Grant "mine", 5 bytes, rw>'
        with pytest.raises(hmc.OutOfRange):
            narrow.narrow(nbytes=6)
        with hmc.Node(name="c", transports=["ipc"]) as c:
            with pytest.raises(hmc.PermissionDenied, match="another peer's"):
                c.connect(a.address, timeout=PATIENCE).open(narrow)


def test_a_grant_ends_by_itself_or_is_revoked():
    with pair(["ipc"]) as (a, _, to_a):
        region = a.allocate(4096, name="mine")
        other = region.grant()
        by_other = to_a.open(other)
        deadline = time.monotonic() + PATIENCE
        by_brief, lifetime = None, 0.2
        while by_brief is None:  # a slow machine may open it too late
            brief = region.grant(lifetime=lifetime)
            with contextlib.suppress(hmc.PermissionDenied):
                by_brief = to_a.open(brief)
            lifetime *= 2
        with pytest.raises(hmc.NotFound, match="the grant has expired"):
            while time.monotonic() < deadline:
                by_brief.put(b"x")
        with pytest.raises(hmc.PermissionDenied, match="has expired"):
            to_a.open(brief)
        by_other.put(b"y")
        region.revoke(timeout=PATIENCE, grant=other)
        with pytest.raises(hmc.NotFound):
            by_other.put(b"z")
        assert bytes(region[:1]) == b"y"
        assert len(to_a.open("mine")) == 4096


def test_a_node_may_open_by_grants_alone():
    with hmc.Node(name="a", listen="tcp://127.0.0.1:0", grants_only=True) as a:
        with hmc.Node(name="b") as b:
            region = a.allocate(64, name="mine")
            peer = b.connect(a.address, timeout=PATIENCE)
            with pytest.raises(hmc.PermissionDenied, match="by grants alone"):
                peer.open("mine")
            assert len(peer.open(region.grant())) == 64


def test_wrong_arguments_are_named():
    with hmc.Node(name="a") as node:
        region = node.allocate(64, name="mine", access="r")
        with pytest.raises(hmc.PermissionDenied):
            region.grant(access="rw")
        with pytest.raises(hmc.InvalidArgument, match="a lifetime of 0 seconds"):
            region.grant(lifetime=0)
        with pytest.raises(hmc.InvalidArgument):
            region.grant(lifetime=-1)
        with pytest.raises(hmc.InvalidArgument, match="register it under a name"):
            node.allocate(64).grant()
        with pytest.raises(hmc.InvalidArgument, match="not a grant"):
            hmc.Grant(b"rubbish")
        with pytest.raises(TypeError):
            hmc.Grant("text")


def test_a_peers_id_is_text():
    with pair(["tcp"]) as (_, __, to_a):
        assert len(to_a.id) == 32 and int(to_a.id, 16) >= 0
