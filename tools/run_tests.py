#!/usr/bin/env python3
"""Runs ctest in one build folder after the other and adds up the results.

    run_tests.py [--without LABEL] [--make MAKE] BUILD...

With --make the first folder is built already, and `MAKE build-NAME` builds each of the others beside the tests
of the one before it, which wait for timeouts and for each other most of the time.
The last line is "N passed, N failed". A GoogleTest program and a file of Python tests count as
many tests as they have cases, any other test as one. Cases that skip themselves are listed and counted as neither.
"""

import argparse
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

# "3/9 Test #3: tcp_link_test .....   Passed    0.02 sec", "...Subprocess aborted***Exception: ..."
RESULT = re.compile(r"^\s*\d+/\d+ Test\s+#\d+: (\S+) \.+\s*(\S.*?)\s+[\d.]+ sec")

TESTS = pathlib.Path(__file__).resolve().parents[1] / "tests"

# A sanitizer's finding ends the program, so that ctest sees it.
SANITIZERS = {
    # Without the interceptor of thread-local memory, which up to GCC 13 takes a block that lies at a
    # certain place in its page for one of an old C library, and then crashes looking for leaks.
    "ASAN_OPTIONS": "halt_on_error=1:detect_leaks=1:detect_stack_use_after_return=1:"
                    "intercept_tls_get_addr=0",
    "LSAN_OPTIONS": f"suppressions={TESTS}/leaks.supp:print_suppressions=0",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    # Tests that touch much memory take half the time with huge pages for what is known of it.
    "TSAN_OPTIONS": f"halt_on_error=1:second_deadlock_stack=1:suppressions={TESTS}/races.supp:"
                    "no_huge_pages_for_shadow=0",
}


class Totals:
    def __init__(self):
        self.passed = 0
        self.failed = 0
        self.skipped = []

    def add(self, name, outcome, report):
        """One ctest result; `report` is the GoogleTest XML file, which need not exist."""
        if "***Skipped" in outcome or "Disabled" in outcome:
            self.skipped.append(name)
            return
        passed, failed, skipped = cases(report)
        if outcome == "Passed" and not passed and not skipped:
            passed = 1  # not a GoogleTest program
        if outcome != "Passed" and not failed:
            failed = 1  # it crashed, hung or complained at its end
        self.passed += passed
        self.failed += failed
        self.skipped += skipped


def cases(report):
    """Passed, failed and the names of the skipped cases of a GoogleTest XML file."""
    passed, failed, skipped = 0, 0, []
    try:
        root = xml.etree.ElementTree.parse(report).getroot()
    except (OSError, xml.etree.ElementTree.ParseError):
        return passed, failed, skipped
    for case in root.iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        if case.get("status") == "notrun" or case.find("skipped") is not None:
            skipped.append(name)
        elif case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        else:
            passed += 1
    return passed, failed, skipped


def has_thread_sanitizer(build):
    cache = pathlib.Path(build, "CMakeCache.txt").read_text()
    return re.search(r"^HMC_SANITIZE:\w+=.*thread", cache, re.MULTILINE) is not None


def wrapper(build):
    """ThreadSanitizer of older compilers dies where the kernel randomises addresses widely."""
    if not has_thread_sanitizer(build) or not shutil.which("setarch"):
        return []
    fixed = ["setarch", "-R"]
    allowed = subprocess.run(fixed + ["true"], stderr=subprocess.DEVNULL).returncode == 0
    return fixed if allowed else []


def jobs():
    """How many tests run at once: a third of their time is spent waiting, for each other or a timeout."""
    cores = os.cpu_count() or 1
    return 2 * cores + 1


def run(build, without, totals):
    """Runs ctest in `build`; true when it ran tests and all passed."""
    reports = pathlib.Path(build, "test-reports")
    shutil.rmtree(reports, ignore_errors=True)
    command = ["ctest", "--output-on-failure", "-j", str(jobs())]
    if without:
        command += ["-LE", f"^{re.escape(without)}$"]
    environment = {**SANITIZERS, **os.environ, "GTEST_OUTPUT": f"xml:{reports.resolve()}/"}
    if has_thread_sanitizer(build):
        # UCX's hooks of malloc and the sanitizer's meet at the end of a thread, which then crashes.
        environment.setdefault("UCX_MEM_EVENTS", "n")
    print(f"== {build}: {' '.join(command)}", flush=True)
    ctest = subprocess.Popen(wrapper(build) + command, cwd=build, env=environment, text=True,
                             errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    found = 0
    for line in ctest.stdout:
        print(line, end="", flush=True)
        result = RESULT.match(line)
        if result:
            found += 1
            totals.add(result[1], result[2], reports / f"{result[1]}.xml")
    if found == 0:
        print(f"run_tests: no test ran in {build}", flush=True)
    return ctest.wait() == 0 and found > 0


class Building:
    """`MAKE build-NAME` beside tests: at a low priority, and what it prints is shown at its end."""

    def __init__(self, make, build):
        self.output = tempfile.TemporaryFile("w+", errors="replace")
        self.process = subprocess.Popen(["nice"] + shlex.split(make) + [f"build-{pathlib.Path(build).name}"],
                                        stdin=subprocess.DEVNULL, stdout=self.output, stderr=subprocess.STDOUT)

    def succeeded(self):
        self.process.wait()
        self.output.seek(0)
        print(self.output.read(), end="", flush=True)
        return self.process.returncode == 0


def run_all(builds, make, without, totals):
    """Runs the tests of all folders; those in which something failed."""
    bad, building = [], None
    for build, following in zip(builds, builds[1:] + [None]):
        ready = building is None or building.succeeded()
        building = Building(make, following) if make and following else None
        if not ready or not run(build, without, totals):
            bad.append(build)
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--without", metavar="LABEL", help="leave out the tests with this label")
    parser.add_argument("--make", metavar="MAKE", help="build all folders but the first with this, beside the tests")
    parser.add_argument("builds", metavar="BUILD", nargs="+")
    options = parser.parse_args()
    totals = Totals()
    bad = run_all(options.builds, options.make, options.without, totals)
    if bad and not totals.failed:
        totals.failed = len(bad)
    for name in totals.skipped:
        print(f"skipped: {name}")
    if bad:
        print(f"failed in: {' '.join(bad)}")
    print(f"{totals.passed} passed, {totals.failed} failed", flush=True)
    return 1 if bad or totals.failed else 0


if __name__ == "__main__":
    sys.exit(main())
