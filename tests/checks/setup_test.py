"""tools/setup.sh with make-believe package tools: what it asks of apt, and what it says without."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import project


class Setup(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.bin = pathlib.Path(folder.name)
        self.log = self.bin / "log"
        self.log.write_text("")
        for tool in ("bash", "env", "id"):
            os.symlink(shutil.which(tool), self.bin / tool)
        self.tool("id", "echo 0")

    def tool(self, name, body):
        path = self.bin / name
        path.unlink(missing_ok=True)
        path.write_text(f"#!{shutil.which('bash')}\n{body}\n")
        path.chmod(0o755)

    def apt(self, installed="", body="exit 0", known=True):
        self.tool("apt-cache", "exit 0" if known else "exit 100")
        self.dpkg_query(installed)
        self.tool("apt-get", f'echo "$DEBIAN_FRONTEND $*" >>{self.log}\n{body}')

    def dpkg_query(self, installed):
        """Knows these packages, and of one more the settings that were left when it was removed."""
        self.tool("dpkg-query", f"""echo asked >>{self.bin}/asked
            for package in "${{@:4}}"; do
              case " {installed} " in *" $package "*) printf ' %s=installed ' "$package";; esac
            done
            printf ' libfmt-dev=config-files '
            exit 1""")

    def setup_sh(self, *arguments):
        done = subprocess.run([self.bin / "bash", project.ROOT / "tools/setup.sh", *arguments],
                              env={"PATH": str(self.bin)}, text=True, capture_output=True)
        return done.returncode, done.stdout + done.stderr

    def test_installs_only_what_is_missing_after_an_update(self):
        self.apt(installed="make g++ cmake ninja-build pkg-config python3 libssl-dev "
                 "libspdlog-dev libcli11-dev nlohmann-json3-dev libgtest-dev libgmock-dev "
                 "iproute2 libibverbs-dev libucx-dev libcurl4-openssl-dev python3-dev pybind11-dev")
        self.assertEqual(0, self.setup_sh()[0])
        update, install = self.log.read_text().splitlines()
        self.assertRegex(update, "^noninteractive .* update$")
        self.assertRegex(install, "^noninteractive .* --no-install-recommends libfmt-dev$")

    def test_checks_need_more(self):
        self.apt()
        self.assertEqual(0, self.setup_sh("checks")[0])
        self.assertIn("clang-tidy", self.log.read_text())

    def test_the_python_tests_need_what_they_import_and_a_demo_does_not(self):
        self.apt()
        self.assertEqual(0, self.setup_sh()[0])
        self.assertNotIn("torch", self.log.read_text())
        self.assertEqual(0, self.setup_sh("tests")[0])
        for package in ("python3-pytest", "python3-numpy", "python3-build", "python3-matplotlib",
                        "python3-torch"):
            self.assertIn(f" {package}", self.log.read_text())

    def test_leaves_no_service_of_etcd_running(self):
        self.apt()
        for tool in ("systemctl", "service"):
            self.tool(tool, f'echo "{tool} $*" >>{self.log}')
        self.assertEqual(0, self.setup_sh("tests")[0])
        self.assertRegex(self.log.read_text(), "systemctl disable --now etcd|service etcd stop")
        self.log.write_text("")
        self.assertEqual(0, self.setup_sh()[0])
        self.assertNotIn("etcd", self.log.read_text())

    def test_leaves_out_what_the_distribution_may_not_have(self):
        self.apt(known=False)
        status, output = self.setup_sh("tests")
        self.assertEqual(0, status)
        self.assertIn("apt has no python3-torch here", output)
        self.assertNotIn("torch", self.log.read_text())
        self.assertIn("python3-pytest", self.log.read_text())

    def test_the_rdma_tests_need_a_machine_to_run_in(self):
        self.apt()
        self.assertEqual(0, self.setup_sh("rdma")[0])
        for package in ("qemu-system-x86", "ibverbs-providers", "perftest"):
            self.assertIn(f" {package}", self.log.read_text())
        self.assertNotIn("clang-tidy", self.log.read_text())

    def test_the_site_needs_its_generators(self):
        self.apt()
        self.assertEqual(0, self.setup_sh("docs")[0])
        for package in ("doxygen", "furo", "python3-breathe", "python3-myst-parser", "python3-sphinx"):
            self.assertRegex(self.log.read_text(), " %s( |$)" % package)

    def test_make_wheel_needs_an_environment_for_auditwheel(self):
        self.apt()
        self.assertEqual(0, self.setup_sh("wheel")[0])
        for package in ("python3-venv", "python3-pip", "patchelf"):
            self.assertIn(f" {package}", self.log.read_text())

    def test_refuses_what_it_does_not_know(self):
        self.assertEqual((2, "usage: tools/setup.sh [tests|checks|docs|rdma|wheel]\n"), self.setup_sh("everything"))

    def test_is_quiet_when_all_is_there(self):
        self.apt()
        self.dpkg_query("make g++ cmake ninja-build pkg-config python3 libssl-dev libfmt-dev "
                        "libspdlog-dev libcli11-dev nlohmann-json3-dev libgtest-dev libgmock-dev "
                        "iproute2 libibverbs-dev libucx-dev libcurl4-openssl-dev python3-dev pybind11-dev")
        self.assertEqual((0, ""), self.setup_sh())
        self.assertEqual("", self.log.read_text())
        self.assertEqual("asked\n", (self.bin / "asked").read_text())

    def test_says_what_to_install_where_it_cannot(self):
        status, output = self.setup_sh()
        self.assertEqual(1, status)
        self.assertRegex(output, "no apt[^$]*libfmt-dev")

        self.apt(body="exit 100")
        status, output = self.setup_sh()
        self.assertEqual(1, status)
        self.assertRegex(output, "could not install[^$]*libfmt-dev")

        self.tool("id", "echo 1000")
        status, output = self.setup_sh()
        self.assertEqual(1, status)
        self.assertRegex(output, "not root, and there is no sudo[^$]*libfmt-dev")


if __name__ == "__main__":
    unittest.main()
