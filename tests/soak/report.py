"""What a soak prints at its end."""

import collections
import platform
import time

import hmc


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]


def markdown(soak, options, seconds):
    lines = ["# Soak of %d processes: %d violations" % (len(soak.workers), len(soak.violations)), "",
             "`soak.py --minutes %g --seed %d`, %s, %.0f s, HMC %s, Linux %s, Python %s." % (
                 options.minutes, options.seed, time.strftime("%Y-%m-%d", time.gmtime()), seconds,
                 hmc.__version__, platform.release(), platform.python_version()), "",
             "## What moved", ""]
    lines += table(["transport, kind", "operations", "MiB"],
                   [(what, count, "%.1f" % (size / 2**20)) for what, (count, size) in sorted(soak.total.items())])
    lines += ["", "## Faults", ""]
    lines += table(["fault", "times"], sorted(soak.faults.items()))
    lines += ["", "Calls that failed because of them:", ""]
    lines += table(["where: how", "times"], sorted(soak.explained.items()))
    lines += ["", "## Resources of the process that was never killed", ""]
    seen = soak.workers[0].resources
    lines += table(["", "after a tenth of the time", "at the end"],
                   [(what, seen[len(seen) // 10][what], seen[-2][what]) for what in seen[0]] if len(seen) > 1 else [])
    lines += ["", "## Violations", ""]
    same = collections.Counter(soak.violations)
    lines += ["- %s%s" % (text, " (%d times)" % times if times > 1 else "") for text, times in same.items()] or ["none"]
    return "\n".join(lines)
