"""The documentation's programs with CUDA tensors, which tests/python runs on stand-ins."""

import pytest

from owner import DEVICE
from places import place  # noqa: F401 (a fixture)
from test_snippets import CLIENT, FIRST_CLIENT, FIRST_ON_CUDA, FIRST_SERVER, ON_CUDA, SERVER, run

if DEVICE == "cpu":
    pytest.skip("the programs ask for a GPU", allow_module_level=True)

SAME = "assert torch.equal(received, sent)\n"


def test_second_generation(place):  # noqa: F811
    assert run(place, SERVER, CLIENT + ON_CUDA + SAME) == ["word 1"]


def test_first_generation(place):  # noqa: F811
    on_the_device = "assert session.buf.mem_type.name == 'NVIDIA_GPU'\n"
    run(place, FIRST_SERVER + "sys.stdin.read()\n",
        FIRST_CLIENT % ("DEFAULT", "RDMA") + FIRST_ON_CUDA + SAME + on_the_device)
