"""What goes wrong with CUDA memory, on the fake driver."""

import pytest

from cuda_faults import *  # noqa: F401,F403 (tests and fixtures)
from places import fake_driver


@pytest.fixture
def driver():
    return {"LD_LIBRARY_PATH": fake_driver(), "CUDA_VISIBLE_DEVICES": "0"}
