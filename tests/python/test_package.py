"""What `import hmc` is and costs."""

import hmc


def test_has_a_version():
    assert hmc.__version__.count(".") == 2
