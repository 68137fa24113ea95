"""What goes wrong with CUDA memory, on the driver that a test module's fixture `driver` names by its
environment: tests/python/test_cuda_faults.py has the fake one, tests/gpu/test_faults.py NVIDIA's.
"""

import contextlib
import signal

import pytest

from peers import Child

SIZE = 4 << 20

DRIVER = """
import contextlib, ctypes, gc, os, sys
import hmc

SIZE = 4 << 20
cuda = ctypes.CDLL("libcuda.so.1")
u64 = ctypes.c_uint64


def call(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    assert code == 0, (name, code)


call("cuInit", 0)


def current_context():
    context = ctypes.c_void_p()
    call("cuCtxGetCurrent", ctypes.byref(context))
    return context.value


def make_current():
    context = ctypes.c_void_p()
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxPushCurrent_v2", context)


def free_and_total():
    free, total = u64(), u64()
    call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    return free.value, total.value


@contextlib.contextmanager
def error_in(*words):
    try:
        yield
    except hmc.HMCError as error:
        assert all(word in str(error) for word in words), error
    else:
        raise AssertionError("there was no error that says " + ", ".join(words))


def content(remote):
    data = bytearray(len(remote))
    remote.get(data)
    return bytes(data)


class Array:
    def __init__(self, pointer, size):
        self.__cuda_array_interface__ = {"data": (pointer, False), "shape": (size,),
                                         "typestr": "|u1", "version": 3}
"""

# Memory of the device and of the host. It answers "release NAME" and "free".
OWNER = DRIVER + """
node = hmc.Node(listen="tcp://127.0.0.1:0", transports=sys.argv[2:])
regions = {"device": node.allocate(int(sys.argv[1]), name="device", device="cuda:0"),
           "host": node.allocate(int(sys.argv[1]), name="host")}
make_current()
print(node.address)
for line in sys.stdin:
    command, *names = line.split()
    for name in names:
        node.unregister(name)
        del regions[name]
    gc.collect()
    print(free_and_total()[0] if command == "free" else command)
node.close()
"""

USER = DRIVER + """
node = hmc.Node(listen="tcp://127.0.0.1:0", transports=sys.argv[2:])
peer = node.connect(sys.argv[1])
device, host = peer.open("device"), peer.open("host")
"""

DONE = """
node.close()
print("done")
"""


@contextlib.contextmanager
def owner_of(size, *transports, **environment):
    with Child(OWNER, size, *transports, **environment) as owner:
        yield owner, owner.answer()


def play(code, driver, *transports):
    """Runs a program beside an owner of memory."""
    with owner_of(SIZE, *transports, **driver) as (_, address), \
            Child(USER + code + DONE, address, *transports, **driver) as user:
        assert user.answer() == "done"
        assert user.ends() == 0, user.errors


@pytest.fixture(params=["ipc", "tcp"])
def transport(request):
    return request.param


OUT_OF_MEMORY = """
mine = node.allocate(SIZE, device="cuda:0")
make_current()
free, total = free_and_total()
too_much = min(free + (256 << 20), total)
for _ in range(3):
    with error_in("cuda:0 has no %d bytes" % too_much, "are free"):
        node.allocate(too_much, device="cuda:0")
    with error_in("cuda:0 has no %d bytes: it has %d" % (total + 1, total)):
        node.allocate(total + 1, device="cuda:0")
assert free - free_and_total()[0] < 64 << 20
host.put(b"m" * SIZE)
host.get(mine)
device.put(mine)
assert content(device) == b"m" * SIZE
"""


def test_too_little_device_memory_is_said_in_numbers_and_the_node_goes_on(driver, transport):
    play(OUT_OF_MEMORY, driver, transport)


# A kernel that writes where nothing is.
BROKEN = '''
PTX = b"""
.version 6.0
.target sm_70
.address_size 64
.visible .entry stray()
{
  .reg .b64 %rd<2>;
  .reg .b32 %r<2>;
  mov.u64 %rd1, 8;
  mov.u32 %r1, 1;
  st.global.u32 [%rd1], %r1;
  ret;
}
"""
mine = node.allocate(SIZE, device="cuda:0")
mine_on_host = node.allocate(SIZE)
device.put(mine)
make_current()
module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
call("cuModuleLoadData", ctypes.byref(module), PTX)
call("cuModuleGetFunction", ctypes.byref(kernel), module, b"stray")
under_way = [device.start_put(mine) for _ in range(20)]
call("cuLaunchKernel", kernel, 1, 1, 1, 1, 1, 1, 0, None, None, None)
assert cuda.cuCtxSynchronize() == 700
for transfer in under_way:  # some may have been over before
    with contextlib.suppress(hmc.HMCError):
        transfer.wait(timeout=60)
        continue
    assert transfer.done()
for _ in range(3):
    for attempt in (lambda: device.put(mine, timeout=60), lambda: device.get(mine, timeout=60),
                    lambda: host.put(mine, timeout=60), lambda: node.allocate(8, device="cuda:0")):
        with error_in("CUDA_ERROR_ILLEGAL_ADDRESS", "new process"):
            attempt()
host.put(b"h" * SIZE)
host.get(mine_on_host)
assert memoryview(mine_on_host) == b"h" * SIZE
'''


def test_a_device_that_the_users_kernel_broke_is_said_so_and_the_host_goes_on(driver, transport):
    play(BROKEN, driver, transport)


# Memory of the other context goes in one piece and in many.
SECOND_CONTEXT = """
device.put(b"d" * SIZE)
another = ctypes.c_void_p()
call("cuCtxCreate_v2", ctypes.byref(another), 0, 0)
pointer = u64()
call("cuMemAlloc_v2", ctypes.byref(pointer), u64(SIZE))
theirs = Array(pointer.value, SIZE)
mine = node.allocate(SIZE, device="cuda:0")
node.register(theirs, name="theirs")
with hmc.Node(transports=sys.argv[2:]) as third:
    registered = third.connect(node.address).open("theirs")
    device.get(theirs)
    assert content(registered) == b"d" * SIZE
    registered.put(b"t" * SIZE)
    device.put(theirs)
    assert content(device) == b"t" * SIZE
    device.get(mine)
    host.put(mine)
    assert content(host) == b"t" * SIZE
    half = SIZE // 2
    offsets = list(range(0, half, 8192))
    registered.put(b"b" * SIZE)
    for local in (theirs, mine):
        device.get_blocks(local, offsets, offsets, 4096)
        device.put_blocks(local, offsets, [half + offset for offset in offsets], 4096)
    assert content(registered)[:12288] == b"t" * 4096 + b"b" * 4096 + b"t" * 4096
assert content(device) == b"t" * SIZE
assert current_context() == another.value
"""


def test_a_second_context_is_left_current_and_its_memory_moves(driver, transport):
    play(SECOND_CONTEXT, driver, transport)


FORKED = """
mine = node.allocate(SIZE, device="cuda:0")
device.put(mine)
child = os.fork()
if child == 0:
    os.closerange(0, 1)
    try:
        with error_in("fork"):
            device.put(mine, timeout=20)
        with error_in("fork"):
            hmc.Node().allocate(8, device="cuda:0")
        region = hmc.Node().allocate(8)  # the host's is no trouble
        memoryview(region)[:] = b"8 bytes."
    except BaseException as error:
        print(error, file=sys.stderr)
        os._exit(1)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
device.put(mine)
"""


def test_a_forked_child_is_told_that_cuda_does_not_survive(driver, transport):
    play(FORKED, driver, transport)


def test_memory_that_its_owner_gave_back_is_an_error_and_both_devices_go_on(driver, transport):
    size = 64 << 20
    code = """
mine = node.allocate(SIZE, device="cuda:0")
device.put(mine)
print("mapped")
sys.stdin.readline()
for _ in range(3):
    with error_in("was revoked by its owner"):
        device.put(mine, timeout=60)
    with error_in("was revoked by its owner"):
        device.get(mine, timeout=60)
host.put(mine)
assert content(host)[:SIZE] == bytes(SIZE)
"""
    with owner_of(size, transport, **driver) as (owner, address):
        with Child(USER + code + DONE, address, transport, **driver) as user:
            assert user.answer() == "mapped"
            before = int(owner.ask("free"))
            assert owner.ask("release device") == "release"
            assert user.ask() == "done"
            assert user.ends() == 0, user.errors
        assert int(owner.ask("free")) - before > size - (16 << 20)


def test_a_peer_that_stops_in_the_middle_delays_only_what_needs_it(driver, transport):
    code = """
mine = node.allocate(len(device), device="cuda:0")
device.put(mine)
print("mapped")
sys.stdin.readline()
transfers = [device.start_put(mine) for _ in range(4)]
print("under way")
sys.stdin.readline()
try:
    for transfer in transfers:
        transfer.wait(timeout=2)
    print("over")
except hmc.HMCError as error:
    assert isinstance(error, TimeoutError), error
    print("late")
sys.stdin.readline()
for transfer in transfers:
    transfer.wait(timeout=60)
device.put(mine)
"""
    with owner_of(256 << 20, transport, **driver) as (owner, address), \
            Child(USER + code + DONE, address, transport, **driver) as user:
        assert user.answer() == "mapped"
        user.tell()
        owner.stop()
        assert user.answer() == "under way"
        assert user.ask() == ("over" if transport == "ipc" else "late")
        owner.send(signal.SIGCONT)
        assert user.ask() == "done"
        assert user.ends() == 0, user.errors
