"""`python -m hmc` is the hmc command: demo, bench, info, doctor, explain.

Three things only Python can do: `python -m hmc bench --python` (hmc.bench),
`python -m hmc bench --collectives` (hmc.bench_collectives) and `python -m hmc bench --plot FILE`
(hmc.plot).
"""

import os
import signal
import sys
from typing import Union

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "hmc")
PLOT_OPTIONS = ("--plot", "--from-json", "--from-csv")


def main() -> Union[None, int, str]:
    """Replace this process by the hmc command; return what to exit with where that cannot be."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["bench"] and "--python" in arguments:
        from . import bench

        return bench.main([one for one in arguments[1:] if one != "--python"])
    if arguments[:1] == ["bench"] and "--collectives" in arguments:
        from . import bench_collectives

        return bench_collectives.main([one for one in arguments[1:] if one != "--collectives"])
    if arguments[:1] == ["bench"] and any(one.split("=")[0] in PLOT_OPTIONS for one in arguments):
        from . import plot

        return plot.main(arguments[1:])
    # Python ignores SIGPIPE, and exec() would hand that down to the command.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execv(PROGRAM, ["hmc"] + arguments)
    except OSError as error:
        return "hmc: {} cannot be run: {}. Build it with -DHMC_BUILD_TOOLS=ON, or install a " \
            "wheel: pip install .".format(PROGRAM, error.strerror)


if __name__ == "__main__":
    sys.exit(main())
