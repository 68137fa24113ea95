"""Peer.call, and what answers it."""

import asyncio
import gc
import threading
import weakref

import pytest

import hmc
from node_peers import pair
from peers import PATIENCE


@pytest.fixture
def nodes():
    with pair() as three:
        yield three


def test_a_served_function_answers(nodes):
    a, b, to_a = nodes

    @a.serve
    def double(data):
        return data * 2

    @a.serve
    def who(data, peer):
        return peer.name.encode()

    assert to_a.call("double", b"ab", timeout=PATIENCE) == b"abab"
    assert to_a.call("double", timeout=PATIENCE) == b""
    assert to_a.call("who", bytearray(5), timeout=None) == b"b"
    assert double(b"x") == b"xx", "it stays a function"


def test_what_goes_wrong_is_an_error_of_the_caller(nodes):
    a, b, to_a = nodes

    @a.serve
    def fails(data):
        raise KeyError("page 7")

    @a.serve
    def wrong(data):
        return 5

    with pytest.raises(hmc.HMCError, match='the call "fails" to a.*KeyError: .page 7.'):
        to_a.call("fails", timeout=PATIENCE)
    with pytest.raises(hmc.HMCError, match="TypeError"):
        to_a.call("wrong", timeout=PATIENCE)
    with pytest.raises(hmc.HMCError, match="it serves fails, wrong"):
        to_a.call("nothing", timeout=PATIENCE)
    with pytest.raises(hmc.InvalidArgument, match="16777216 is the most"):
        to_a.call("fails", bytes(17 << 20), timeout=PATIENCE)
    held = threading.Event()

    @a.serve
    def late(data):
        held.wait(PATIENCE)
        return b""

    try:
        with pytest.raises(hmc.DeadlineExceeded):
            b.peers()[0].call("late", timeout=0)
    finally:
        held.set()


def test_calls_are_answered_by_hand(nodes):
    a, b, to_a = nodes
    answers = []
    calling = threading.Thread(
        target=lambda: answers.append(to_a.call("by hand", b"12", timeout=PATIENCE)))
    calling.start()
    call = a.next_call(timeout=PATIENCE)
    assert (call.peer.name, call.name, call.data) == ("b", "by hand", b"12")
    assert repr(call) == '<hmc.Call "by hand" of "b">'
    call.answer(memoryview(b"34"))
    calling.join(PATIENCE)
    assert answers == [b"34"]
    with pytest.raises(hmc.AlreadyExists):
        call.refuse("too late")
    with pytest.raises(hmc.DeadlineExceeded):
        a.next_call(timeout=0)


def test_calls_are_made_and_answered_in_asyncio(nodes):
    a, b, to_a = nodes

    async def serve():
        async for call in a.calls():
            call.answer(call.data[::-1])

    async def main():
        serving = asyncio.ensure_future(serve())
        answers = await asyncio.gather(*[to_a.call_async("turn", b"%d." % i) for i in range(10)])
        assert answers == [b".%d" % i for i in range(10)]
        a.close()
        await serving

    asyncio.run(asyncio.wait_for(main(), PATIENCE))


def test_serving_keeps_no_node_open():
    node = hmc.Node()
    node.serve(lambda data: data)
    serving = [one for one in threading.enumerate() if one.name == "hmc-serve"]
    assert serving
    gone = weakref.ref(node)
    del node
    for one in serving:
        one.join(PATIENCE)
        assert not one.is_alive()
    gc.collect()
    assert gone() is None
