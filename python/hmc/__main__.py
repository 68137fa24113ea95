"""`python -m hmc` is the hmc command: demo, bench, info, doctor, explain."""

import os
import signal
import sys

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "hmc")


def main() -> str:
    """Becomes the hmc command; comes back only where there is none."""
    # Python ignores a closed pipe, and what it ignores stays so in the program.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execv(PROGRAM, ["hmc"] + sys.argv[1:])
    except OSError as error:
        return "hmc: {} cannot be run: {}. Build it with -DHMC_BUILD_TOOLS=ON, or install a " \
            "wheel: pip install .".format(PROGRAM, error.strerror)


if __name__ == "__main__":
    sys.exit(main())
