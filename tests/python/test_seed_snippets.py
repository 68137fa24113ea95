"""The Python programs of the documentation, run with nothing changed but addresses.

Where the text does not lie beside the checkout, test_snippets.py is the test: it has every call
shape of it.
"""

import pathlib
import re

import pytest

from peers import Child, need
from places import cuda_environment, place  # noqa: F401 (a fixture)

TEXTS = pathlib.Path(__file__).resolve().parents[2].parent / "shared" / "seeds"


def blocks_of(number):
    found = sorted(TEXTS.glob(number + "_*.txt"))
    if not found:
        pytest.skip("%s does not hold the documentation: test_snippets.py is the test" % TEXTS)
    return re.findall(r"```python\n(.*?)```", found[0].read_text(), re.DOTALL)


# What the tests add: the server stays until it is asked, and says what its buffer begins with.
STAY = """
import sys
print("stays")
for line in sys.stdin:
    print(bytes(sess.buf.buffer_get_cpu(nbytes=int(line.split()[1]), offset=int(line.split()[0]))))
"""


def run(place, server, client, **environment):
    """Runs the two; answers the client's lines and the server, which is still there."""
    serving = Child(place.adapt(server), prefix=place.server_prefix, **environment)
    try:
        assert serving.answer() == "UCX server ready"
        with Child(place.adapt(client), prefix=place.client_prefix, **environment) as calling:
            status, lines = calling.finish()
            assert status == 0, calling.errors + serving.errors
        return serving, lines.splitlines()
    except BaseException:
        serving.__exit__()
        raise


@pytest.fixture(scope="module")
def second():
    """Seed 000: server, client, sender, receiver, numpy, torch, CUDA."""
    blocks = blocks_of("000")
    assert len(blocks) == 7
    return blocks


@pytest.fixture(scope="module")
def first():
    """Seed 003, in its order."""
    blocks = blocks_of("003")
    assert len(blocks) == 12
    return blocks


def test_second_generation_cpu(place, second):  # noqa: F811
    server, client, sender, receiver, _, _, _ = second
    serving, lines = run(place, server + receiver + STAY, client + sender)
    with serving:
        assert lines == ["sent 9 bytes"]
        assert serving.answer() == "stays"
        assert serving.ask("0 9") == "b'hello hmc'"
        assert serving.finish()[0] == 0


def test_second_generation_arrays(place, second):  # noqa: F811
    need("numpy")
    need("torch")
    server, client, _, _, in_numpy, in_torch, _ = second
    check = "\nassert (x == y).all()\nprint('numpy')\n"
    serving, lines = run(place, server + STAY,
                         client + in_numpy + check + in_torch
                         + "\nassert torch.equal(t, out)\nprint('torch')\n")
    with serving:
        assert lines == ["sent 9 bytes", "numpy", "torch"]


def test_second_generation_cuda(place, second):  # noqa: F811
    server, client, _, _, _, _, on_cuda = second
    check = "\nassert recv.tobytes() == t.tobytes() and torch.synchronised\nprint('cuda')\n"
    serving, lines = run(place, server + STAY, client + on_cuda + check, **cuda_environment())
    with serving:
        assert lines == ["sent 9 bytes", "cuda"]


def test_first_generation_words(first):
    with Child(first[0] + first[1] + first[2] + "print(sess.buf.size)\n") as program:
        assert program.answer() == str(128 << 20)
        assert program.finish()[0] == 0


def test_first_generation_server_and_client(place, first):  # noqa: F811
    serving, _ = run(place, first[3], first[4])
    with serving:
        assert serving.answer() == "bytearray(b'hello hmc%s')" % ("\\x00" * 7)
        assert serving.finish()[0] == 0, serving.errors


def first_server(first):
    """The server's block up to where it begins to read."""
    return first[3].split("# Example")[0] + STAY


def test_first_generation_bytes_arrive(place, first):  # noqa: F811
    serving, _ = run(place, first_server(first), first[4] + first[11])
    with serving:
        assert serving.answer() == "stays"
        assert serving.ask("0 9") == serving.ask("4096 9") == "b'hello hmc'"


@pytest.mark.parametrize("send, receive, check", [
    (5, 6, "(x == y).all()"), (7, 8, "torch.equal(t, out)")], ids=["numpy", "torch"])
def test_first_generation_arrays(place, first, send, receive, check):  # noqa: F811
    need("numpy")
    need("torch")
    serving, lines = run(place, first_server(first),
                         first[send] + first[receive] + "\nassert %s\nprint('same')\n" % check)
    with serving:
        assert lines == ["same"]


def test_first_generation_cuda(place, first):  # noqa: F811
    check = "\nassert recv.tobytes() == t.tobytes()\nprint(sess.buf.mem_type.name)\n"
    serving, lines = run(place, first_server(first), first[9] + first[10] + check,
                         **cuda_environment())
    with serving:
        assert lines == ["NVIDIA_GPU"]
