#!/usr/bin/env python3
"""Runs the tests that need RDMA, on the kernel's own stack, in a virtual machine.

    run.py [--out FOLDER] BUILD [STEP...]

BUILD is a build folder of this machine; its programs run in the guest as they are. FOLDER keeps the
console and a log for each step. The last line is "N passed, N failed", counted as tools/run_tests.py
does. The exit status is 77 when no such machine can run here.
"""

import argparse
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import steps
import vm

sys.path.insert(0, str(steps.ROOT / "tools"))
import run_tests

TOO_LONG = 124
# Exit statuses of the machine itself.
MACHINE = {
    122: "the kernel complained, see dmesg.txt",
    123: "it could not make its RDMA device, see console.log",
    TOO_LONG: "the steps took too long together",
    vm.NO_ANSWER: "it ended without an answer, see console.log",
}
MISSED = re.compile(r"^.*\bMISSED\b.*$", re.MULTILINE)


class Outcome:
    """How a step ended, from the files that the guest left in `out`."""

    def __init__(self, step, out):
        self.step = step
        self.report = out / "reports" / f"{step.name}.xml"
        self.seconds = 0
        log = out / f"{step.name}.log"
        self.output = log.read_text(errors="replace") if log.exists() else ""
        self.problem = self._problem(out / f"{step.name}.result")

    def _problem(self, result):
        if not self.step.program.exists() and "/" in self.step.command[0]:
            return f"{self.step.command[0]} was not built"
        if not result.exists():
            return "the machine ended before or during it"
        status, milliseconds = map(int, result.read_text().split())
        self.seconds = milliseconds / 1000
        if status == TOO_LONG:
            return f"took more than {self.step.seconds} s"
        if status not in self.step.statuses:
            return f"ended with status {status}"
        if not re.search(self.step.expect, self.output):
            return f"did not print what matches {self.step.expect!r}"
        passed, failed, skipped = run_tests.cases(self.report)
        if skipped and not passed and not failed:
            return "every case skipped itself"
        return ""

    def remarks(self):
        if self.problem:
            return self.problem
        passed, _, skipped = run_tests.cases(self.report)
        remarks = [f"{passed} cases"] if passed else []
        remarks += [f"{len(skipped)} skipped"] if skipped else []
        missed = len(MISSED.findall(self.output))
        remarks += [f"{missed} targets MISSED"] if missed else []
        return ", ".join(remarks)


def row(name, failed, seconds, remarks):
    result = "FAILED" if failed else "passed"
    return f"{name:<24} {result:<8} {seconds:>8.1f}  {remarks}".rstrip()


def summary(outcomes, status):
    """The table, the skipped cases and the totals, as text; and whether all is well. `status` is that
    of the machine."""
    totals = run_tests.Totals()
    lines = [f"{'step':<24} {'result':<8} {'seconds':>8}"]
    for outcome in outcomes:
        totals.add(outcome.step.name, "***Failed" if outcome.problem else "Passed", outcome.report)
        lines.append(row(outcome.step.name, outcome.problem, outcome.seconds, outcome.remarks()))
    if status != 0:
        totals.failed += 1
        lines.append(row("the machine", True, 0, MACHINE.get(status, f"ended with status {status}")))
    lines += [f"skipped: {name}" for name in totals.skipped]
    lines.append(f"{totals.passed} passed, {totals.failed} failed")
    return "\n".join(lines), totals.failed == 0


def script(chosen):
    """What the guest runs."""
    lines = [f". {shlex.quote(str(steps.HERE / 'step.sh'))}"]
    for step in chosen:
        settings = {**step.settings, "GTEST_OUTPUT": f"xml:/run/out/reports/{step.name}.xml"}
        words = ["env", *(f"{name}={value}" for name, value in settings.items()), *step.command]
        lines.append(shlex.join(["step", step.name, str(step.seconds), *words]))
    return "\n".join(lines) + "\n"


def choose(everything, names):
    if not names:
        return everything
    known = {step.name: step for step in everything}
    for name in names:
        if name not in known:
            sys.exit(f"run: there is no step \"{name}\"; there are {', '.join(known)}")
    return [known[name] for name in names]


def run(chosen, out):
    for old in [*out.glob("*.log"), *out.glob("*.result"), *out.glob("reports/*.xml")]:
        old.unlink()
    (out / "reports").mkdir(parents=True, exist_ok=True)
    (out / "steps.sh").write_text(script(chosen))
    status = vm.run(["bash", "/run/out/steps.sh"], out, sum(step.seconds for step in chosen))
    text, well = summary([Outcome(step, out) for step in chosen], status)
    (out / "summary.log").write_text(text + "\n")
    print(f"== rdma: logs are in {out}\n{text}", flush=True)
    return well


def build_snippets(build, folder):
    """Here, because compiling in the guest would take minutes. One that is not there fails its step."""
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run(steps.seed_snippets(build, folder, "--only", "build"), check=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/rdma-vm"))
    parser.add_argument("build", metavar="BUILD", type=pathlib.Path)
    parser.add_argument("step", metavar="STEP", nargs="*", help="only these; all when none is named")
    options = parser.parse_args()
    vm.end_on_signals()
    build, out = options.build.resolve(), options.out.resolve()
    chosen = choose(steps.all_steps(build, out / "snippets"), options.step)
    try:
        vm.check_host()
        if any(step.name == "seed_snippets" for step in chosen):
            build_snippets(build, out / "snippets")
        return 0 if run(chosen, out) else 1
    except vm.CannotRun as why:
        print(f"run: {why}", file=sys.stderr)
        return vm.CANNOT_RUN
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
