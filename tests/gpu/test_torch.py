"""torch tensors between two processes on a machine with a GPU; tools/gpu_check.sh runs this.

HMC_TEST_DEVICE=cpu runs what needs no stream without a GPU.
"""

import gc
import os
import signal
import threading
import time

import pytest

import hmc
from owner import DEVICE, MIB, PATIENCE, Owner, pattern, torch

SIZES = [8, MIB + 3, 64 * MIB]
KERNEL_MS = 50

needs_streams = pytest.mark.skipif(DEVICE == "cpu", reason="the CPU has no streams")


@pytest.fixture(scope="module", params=["ipc", "tcp"])
def owner(request):
    made = Owner(request.param, max(SIZES) + 8)
    yield made
    made.close()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["node", "torch", "host"])
def test_what_is_put_arrives_and_can_be_fetched(owner, name, size):
    remote = owner.open(name)
    tensor = pattern(size, 7, DEVICE)
    remote.put(tensor)
    assert owner.ask("check", name, size, 7) == "same"
    back = torch.zeros_like(tensor)
    remote[:size].get(back)
    assert torch.equal(back, tensor)


@pytest.mark.parametrize("name", ["node", "torch"])
def test_tensors_of_the_host_reach_the_device_and_come_back(owner, name):
    remote = owner.open(name)
    tensor = pattern(MIB + 3, 9, "cpu")
    remote.put(tensor)
    assert owner.ask("check", name, MIB + 3, 9) == "same"
    back = torch.zeros_like(tensor)
    remote[:MIB + 3].get(back)
    assert torch.equal(back, tensor)


@pytest.mark.parametrize("name", ["node", "torch"])
def test_a_tensor_within_a_block_and_a_region_of_the_node_are_local_sides(owner, name):
    remote = owner.open(name)
    part = torch.zeros(MIB + 5000, dtype=torch.uint8, device=DEVICE)[1000:1000 + MIB]
    part.copy_(pattern(MIB, 3, DEVICE))
    remote.put(part)
    mine = owner.node.allocate(MIB, device=DEVICE)
    remote[:MIB].get(mine)
    remote[MIB:].put(mine)
    back = torch.zeros(2 * MIB, dtype=torch.uint8, device=DEVICE)
    remote[:2 * MIB].get(back)
    assert torch.equal(back, torch.cat([part, part]))


def cycles_of_kernel():
    """What torch.cuda._sleep() needs in order to run for KERNEL_MS."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    trial = 20_000_000
    torch.cuda._sleep(trial)  # the first one loads it
    begin.record()
    torch.cuda._sleep(trial)
    end.record()
    end.synchronize()
    return int(trial * KERNEL_MS / begin.elapsed_time(end))


@pytest.fixture(params=["current", "named"])
def work(request):
    """(the stream that the work is on, the arguments that tell HMC so)."""
    stream = torch.cuda.Stream()
    if request.param == "named":
        yield stream, {"stream": stream}
        return
    with torch.cuda.stream(stream):
        yield stream, {}


class Scene:
    """A peer's memory, two tensors of ours, and nothing left that is loaded at its first use."""

    size = MIB + 3

    def __init__(self, owner, name):
        self.remote = owner.open(name)[:self.size]
        self.wanted = pattern(self.size, 5, DEVICE)
        self.inverse = ~self.wanted
        self.tensor = torch.zeros_like(self.wanted)
        self.seen = torch.zeros_like(self.wanted)
        self.cycles = cycles_of_kernel()
        torch.bitwise_not(self.tensor, out=self.seen)
        self.remote.put(self.tensor)
        self.remote.start_get(self.tensor).wait()
        self.seen.zero_()
        torch.cuda.synchronize()


@needs_streams
@pytest.mark.parametrize("name", ["node", "torch", "host"])
def test_a_put_waits_for_the_kernel_before_it_and_its_caller_does_not(owner, work, name):
    stream, named = work
    scene = Scene(owner, name)
    written = torch.cuda.Event()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(scene.cycles)
        torch.bitwise_not(scene.inverse, out=scene.tensor)
        written.record()
    transfer = scene.remote.start_put(scene.tensor, **named)
    assert not written.query()
    transfer.wait()
    assert owner.ask("check", name, scene.size, 5) == "same"


@needs_streams
@pytest.mark.parametrize("name", ["node", "torch", "host"])
def test_a_kernel_after_a_get_sees_its_bytes_and_the_host_does_not_wait(owner, work, name):
    stream, named = work
    scene = Scene(owner, name)
    scene.remote.put(scene.wanted)
    read = torch.cuda.Event()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(scene.cycles)  # the get comes after it, so nothing below is over early
    transfer = scene.remote.start_get(scene.tensor, **named)
    with torch.cuda.stream(stream):
        torch.bitwise_not(scene.tensor, out=scene.seen)
        read.record()
    assert not read.query()
    read.synchronize()
    assert torch.equal(scene.seen, scene.inverse)
    transfer.wait()


@pytest.mark.parametrize("transport", ["ipc", "tcp"])
def test_a_killed_peer_is_an_error_and_our_device_goes_on(transport):
    size = 256 * MIB
    owner = Owner(transport, size)
    try:
        remote = owner.open("node")
        tensor = pattern(size, 1, DEVICE)
        under_way, killed = threading.Event(), []

        def kill():
            under_way.wait(PATIENCE)
            killed.append(time.monotonic())
            owner.process.send_signal(signal.SIGKILL)

        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        with pytest.raises(hmc.HMCError):
            for count in range(1_000_000):
                if count == 3:
                    under_way.set()
                remote.put(tensor, timeout=60)
        assert time.monotonic() - killed[0] < 30
        killer.join(PATIENCE)
        assert torch.equal(tensor, pattern(size, 1, DEVICE))
        assert float((torch.ones(1000, device=DEVICE) * 2).sum()) == 2000
    finally:
        owner.close()


def held():
    """(descriptors of this process, its mappings, free bytes of the device)."""
    gc.collect()
    free = 0
    if DEVICE != "cpu":
        torch.cuda.synchronize()
        free = torch.cuda.mem_get_info(DEVICE)[0]
    with open("/proc/self/maps") as maps:
        return len(os.listdir("/proc/self/fd")), len(maps.readlines()), free


def test_opening_and_closing_leaks_nothing(owner):
    tensor = pattern(MIB, 2, DEVICE)
    back = torch.zeros_like(tensor)

    def cycle():
        with hmc.Node(transports=[owner.transport]) as node:
            peer = node.connect(owner.address)
            for name in ("node", "torch", "host"):
                remote = peer.open(name)[:MIB]
                remote.put(tensor)
                remote.get(back)
            mine = node.allocate(4 * MIB, device=DEVICE)
            peer.open("node").put(mine)

    for _ in range(3):
        cycle()
    descriptors, mappings, free = held()
    for _ in range(200):
        cycle()
    descriptors_then, mappings_then, free_then = held()
    assert descriptors_then <= descriptors
    assert mappings_then < mappings + 100  # a few come and go with threads
    # The driver counts in pages of 2 MiB, and the other process is on the same device. One page
    # that leaks in each cycle would be 400 MiB.
    assert free - free_then < 32 * MIB
