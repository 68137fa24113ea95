"""tools/run_tests.py counts what ctest and GoogleTest say, and nothing that fails gets lost."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import project

sys.path.insert(0, str(project.ROOT / "tools"))
import run_tests

REPORT = """<testsuites><testsuite>
<testcase name="a" classname="S" status="run"/>
<testcase name="b" classname="S" status="run"><failure message="no"/></testcase>
<testcase name="c" classname="S" status="run"><skipped message="no device"/></testcase>
<testcase name="d" classname="S" status="notrun"/>
</testsuite></testsuites>"""


class Counting(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.totals = run_tests.Totals()

    def add(self, outcome, report=None):
        path = self.root / "report.xml"
        if report:
            path.write_text(report)
        self.totals.add("x_test", outcome, path)
        return self.totals.passed, self.totals.failed, self.totals.skipped

    def test_cases_count_one_by_one(self):
        self.assertEqual((1, 1, ["S.c", "S.d"]), self.add("***Failed", REPORT))

    def test_a_script_counts_as_one(self):
        self.assertEqual((1, 0, []), self.add("Passed"))

    def test_a_crash_counts_even_when_all_cases_passed(self):
        passing = '<testsuites><testcase name="a" classname="S" status="run"/></testsuites>'
        self.assertEqual((1, 1, []), self.add("Subprocess aborted***Exception:", passing))
        self.assertEqual((1, 2, []), self.add("***Timeout", "<testsu"))

    def test_every_form_of_ctest_line_is_read(self):
        for line, outcome in [
            (" 1/12 Test  #3: x_test ..........   Passed    0.02 sec", "Passed"),
            ("10/12 Test #10: x_test ..........***Failed    0.02 sec", "***Failed"),
            ("1/1 Test #1: x_test ...Subprocess aborted***Exception:   0.1 sec",
             "Subprocess aborted***Exception:"),
            ("1/1 Test #1: x_test ...***Not Run   0.00 sec", "***Not Run"),
            ("1/1 Test #1: x_test ...***Timeout 300.01 sec", "***Timeout"),
        ]:
            with self.subTest(line=line):
                match = run_tests.RESULT.match(line)
                self.assertEqual(("x_test", outcome), (match[1], match[2]))


class Running(unittest.TestCase):
    """With a real ctest over a folder of its own."""

    def run_on(self, tests):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "CMakeCache.txt").write_text("HMC_SANITIZE:STRING=\n")
            pathlib.Path(folder, "CTestTestfile.cmake").write_text(tests)
            done = subprocess.run([project.ROOT / "tools/run_tests.py", folder], text=True,
                                  capture_output=True)
        return done.returncode, done.stdout.splitlines()[-1]

    def test_the_last_line_says_it_all(self):
        both = 'add_test(good_test "true")\nadd_test(bad_test "false")\n'
        self.assertEqual((0, "1 passed, 0 failed"), self.run_on('add_test(good_test "true")\n'))
        self.assertEqual((1, "1 passed, 1 failed"), self.run_on(both))

    def test_entries_that_share_a_program_have_a_report_each(self):
        entry = 'add_test({0}_test "sh" "-c" "mkdir -p test-reports; echo \\"$1\\" > test-reports/{0}_test.xml" sh "{1}")\n'
        case = "<testcase classname='S' name='{}' status='run'/>"
        both = entry.format("one", "<t>" + case.format("a") + "</t>")
        both += entry.format("two", "<t>" + case.format("b") + case.format("c") + "</t>")
        self.assertEqual((0, "3 passed, 0 failed"), self.run_on(both))

    def test_no_tests_are_a_failure(self):
        self.assertEqual((1, "0 passed, 1 failed"), self.run_on(""))


class Building(unittest.TestCase):
    """With a make of our own, which leaves a folder that ctest can run."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.make = self.root / "make"

    def folder(self, name, test):
        (self.root / name).mkdir()
        (self.root / name / "CMakeCache.txt").write_text("HMC_SANITIZE:STRING=\n")
        (self.root / name / "CTestTestfile.cmake").write_text(test)

    def run_on(self, make, *builds):
        self.make.write_text(f"#!/bin/sh\ncd {self.root}\n{make}\n")
        self.make.chmod(0o755)
        done = subprocess.run([project.ROOT / "tools/run_tests.py", "--make", self.make] +
                              [self.root / build for build in builds], text=True, capture_output=True, timeout=60)
        return done.returncode, done.stdout

    def test_a_folder_is_built_beside_the_tests_of_the_one_before(self):
        # Either waits for the other: the test for the build to begin, the build for the test.
        self.folder("one", f'add_test(one_test "sh" "-c" "cat {self.root}/built; echo > {self.root}/tested")\n')
        subprocess.run(["mkfifo", self.root / "built", self.root / "tested"], check=True)
        status, output = self.run_on(
            'echo "$1 said" && echo > built && cat tested && cp -r one two && '
            'echo "add_test(two_test true)" > two/CTestTestfile.cmake', "one", "two")
        self.assertEqual((0, "2 passed, 0 failed"), (status, output.splitlines()[-1]))
        self.assertLess(output.index("one_test"), output.index("build-two said"))
        self.assertLess(output.index("build-two said"), output.index("two_test"))

    def test_what_cannot_be_built_has_failed(self):
        self.folder("one", 'add_test(one_test "true")\n')
        status, output = self.run_on('echo "no compiler"; exit 1', "one", "two")
        self.assertEqual((1, "1 passed, 1 failed"), (status, output.splitlines()[-1]))
        self.assertIn("no compiler", output)
        self.assertIn(f"failed in: {self.root}/two", output)


if __name__ == "__main__":
    unittest.main()
