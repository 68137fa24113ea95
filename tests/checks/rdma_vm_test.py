"""tests/rdma_vm/run.py tells what the guest left behind as it is, and nothing that is missing gets lost."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import project

sys.path.insert(0, str(project.ROOT / "tests/rdma_vm"))
import run
import steps
import vm

CASE = '<testcase name="{}" classname="S" status="run">{}</testcase>'
PASSED = CASE.format("a", "")
SKIPPED = CASE.format("b", '<skipped message="no device"/>')
FAILED = CASE.format("c", '<failure message="no"/>')


class Summary(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name)
        (self.out / "reports").mkdir()

    def outcome(self, result=None, output="", cases=None, **more):
        """Of a step that left these files."""
        if result is not None:
            (self.out / "x_test.result").write_text(result)
        (self.out / "x_test.log").write_text(output)
        if cases is not None:
            (self.out / "reports/x_test.xml").write_text(f"<testsuites>{cases}</testsuites>")
        return run.Outcome(steps.Step("x_test", ["sh"], 60, **more), self.out)

    def last_line(self, outcome, status=0):
        text, well = run.summary([outcome], status)
        return text.splitlines()[-1], well

    def test_a_step_that_passed_is_counted_by_its_cases(self):
        outcome = self.outcome("0 1500", cases=PASSED + SKIPPED)
        self.assertEqual("", outcome.problem)
        self.assertEqual(1.5, outcome.seconds)
        self.assertEqual(("1 passed, 0 failed", True), self.last_line(outcome))
        self.assertIn("skipped: S.b", run.summary([outcome], 0)[0])

    def test_a_step_without_cases_counts_as_one(self):
        self.assertEqual(("1 passed, 0 failed", True), self.last_line(self.outcome("0 10")))

    def test_failures_say_why(self):
        for outcome, why in [
            (self.outcome(None), "before or during"),
            (self.outcome("124 60000"), "more than 60 s"),
            (self.outcome("1 10", cases=PASSED + FAILED), "status 1"),
            (self.outcome("0 10", cases=SKIPPED), "every case skipped"),
            (self.outcome("0 10", cases="", output="nothing here", expect="rxe0"), "rxe0"),
        ]:
            with self.subTest(why=why):
                self.assertIn(why, outcome.problem)
                self.assertFalse(self.last_line(outcome)[1])
                self.assertIn("1 failed", self.last_line(outcome)[0])

    def test_what_was_not_built_is_a_failure(self):
        outcome = run.Outcome(steps.Step("gone", ["/nowhere/gone_test"], 60), self.out)
        self.assertIn("/nowhere/gone_test was not built", outcome.problem)

    def test_missed_bars_are_told_and_no_failure(self):
        outcome = self.outcome("1 10", output="a  met\nb  MISSED\n", statuses=(0, 1))
        self.assertEqual(("", "1 targets MISSED"), (outcome.problem, outcome.remarks()))

    def test_a_machine_that_failed_is_a_failure_of_its_own(self):
        outcome = self.outcome("0 10")
        self.assertEqual(("1 passed, 1 failed", False), self.last_line(outcome, vm.NO_ANSWER))
        self.assertIn("the kernel complained", run.summary([outcome], 122)[0])

    def test_settings_and_odd_words_reach_the_guest_whole(self):
        text = run.script([steps.Step("x", ["sh", "-c", "echo 'a b'"], 5, {"A": "1 2"})])
        step = text.splitlines()[-1]
        printed = subprocess.run(["bash", "-c", f'step() {{ shift 2; "$@"; }}\n{step}'], text=True,
                                 stdout=subprocess.PIPE, check=True).stdout
        self.assertEqual("a b\n", printed)
        self.assertIn("'A=1 2'", step)


class Host(unittest.TestCase):
    def test_says_what_is_missing_with_a_status_of_its_own(self):
        with tempfile.TemporaryDirectory() as nothing:
            done = subprocess.run(
                [os.path.realpath(sys.executable), "-c",
                 "import sys, vm\nvm.shutil.which = lambda *_, **__: None\n"
                 "sys.argv = ['vm', '--', 'true']\nsys.exit(vm.main())"],
                cwd=nothing, env={"PYTHONPATH": str(steps.HERE), "PATH": nothing}, text=True,
                capture_output=True, check=False)
        self.assertEqual(vm.CANNOT_RUN, done.returncode, done.stderr)
        self.assertIn("tools/setup.sh rdma" if os.uname().machine == "x86_64" else "x86-64",
                      done.stderr)


if __name__ == "__main__":
    unittest.main()
