"""Every check can fail: each rule meets text that breaks it, and text that keeps it."""

import json
import pathlib
import subprocess
import tempfile
import unittest

import doc_links
import doc_site
import house_rules
import include_directions
import one_definition
import project
import tidy


class TreeTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def write(self, name, text=""):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


class IncludeDirections(TreeTest):
    def setUp(self):
        super().setUp()
        for header in ("src/base/error.h", "src/memory/copy.h", "src/transport/transport.h",
                       "src/transport/ipc/ipc.h", "src/control/control.h", "src/node/table.h",
                       "include/hmc/status.h", "include/hmc/node.h"):
            self.write(header)

    def check(self, name, include):
        self.write(name, f"#include {include}\n")
        return include_directions.complaints(self.root)

    def test_downwards_is_fine(self):
        self.assertEqual([], self.check("src/transport/tcp/tcp.cc", '"transport/transport.h"'))
        self.assertEqual([], self.check("src/node/node.cc", '"control/control.h"'))
        self.assertEqual([], self.check("src/node/node.cc", '"hmc/node.h"'))
        self.assertEqual([], self.check("src/transport/registry.cc", '"transport/ipc/ipc.h"'))
        self.assertEqual([], self.check("src/control/proof.cc", "<openssl/hmac.h>"))
        self.assertEqual([], self.check("src/memory/cuda/cuda.cc", "<cuda_runtime.h>"))
        self.assertEqual([], self.check("src/base/error.cc", "<memory>"))
        self.assertEqual([], self.check("include/hmc/memory.h", '"hmc/status.h"'))

    def test_upwards_is_not(self):
        for name, include in [
            ("src/base/log.cc", '"memory/copy.h"'),
            ("src/transport/tcp/tcp.cc", '"control/control.h"'),
            ("src/transport/tcp/tcp.cc", '"node/table.h"'),
            ("src/control/ring.cc", '"memory/copy.h"'),
            ("src/transport/tcp/tcp.cc", '"transport/ipc/ipc.h"'),
            ("src/node/node.cc", '"transport/ipc/ipc.h"'),
            ("src/transfer/engine.cc", '"hmc/node.h"'),
            ("src/node/node.cc", '"table.h"'),
            ("src/utils/bag.cc", "<vector>"),
        ]:
            with self.subTest(name=name, include=include):
                self.assertEqual(1, len(self.check(name, include)))
                (self.root / name).unlink()

    def test_libraries_stay_in_their_folders(self):
        for include in ("<openssl/hmac.h>", "<spdlog/spdlog.h>",
                        "<cuda.h>", "<hip/hip_runtime.h>", "<ucp/api/ucp.h>",
                        "<infiniband/verbs.h>", "<CLI/CLI.hpp>"):
            with self.subTest(include=include):
                self.assertEqual(1, len(self.check("src/transfer/engine.cc", include)))

    def test_public_headers_show_nothing_inside(self):
        self.assertEqual(1, len(self.check("include/hmc/memory.h", '"memory/copy.h"')))
        self.assertEqual(1, len(self.check("include/hmc/memory.h", "<fmt/core.h>")))
        self.assertEqual(1, len(self.check("include/hmc/memory.h", "<cuda.h>")))


class HouseRules(TreeTest):
    def check(self, name, text):
        self.write(name, text)
        return house_rules.complaints(self.root)

    def test_plain_code_is_fine(self):
        self.assertEqual([], self.check("src/base/a.cc", "void sleep(int x);\nbell.sleep(3);\n"
                                        "x.exit(); mkdtemp(name_XXXXXX); // no sleep_for here\n"))
        self.assertEqual([], self.check("src/base/a.cc", "int x;\n" * 400))

    def test_our_own_wheel_may_be_installed(self):
        self.assertEqual([], self.check("README.md", "pip install .  # makes hmc\npip install dist/hmc-*.whl\n"
                                        "pip install hmc-0.1.0-cp311-cp311-linux_x86_64.whl\n"))

    def test_long_files_are_not(self):
        self.assertEqual(1, len(self.check("src/base/a.cc", "int x;\n" * 401)))

    def test_banned_text_is_not(self):
        for name, text in [
            ("tools/a.py", "# TO" + "DO later"),
            ("README.md", "FIX" + "ME"),
            ("README.md", "pip inst" + "all hmc"),
            ("docs/a.md", "`python -m pip inst" + "all -U numpy hmc[torch]` does it."),
            ("docs/a.md", "Type pip3  inst" + "all --user hmc."),
            ("tests/unit/a.cc", "std::this_thread::sle" + "ep_for(1s);"),
            ("tests/python/a.py", "time.sle" + "ep(1)"),
            ("src/base/a.cc", "  ::usle" + "ep(3);"),
            ("src/base/a.cc", "  sle" + "ep(seconds);"),
            ("src/base/a.cc", "  exit(1);"),
            ("src/base/a.cc", "  std::signal(SIGINT, stop);"),
            ("src/base/a.cc", "  std::cout << 1;"),
            ("src/base/a.cc", '  printf("x");'),
        ]:
            with self.subTest(text=text):
                self.assertEqual(1, len(self.check(name, text + "\n")))
                (self.root / name).unlink()


class DocLinks(TreeTest):
    def setUp(self):
        super().setUp()
        self.write("src/memory/copy.h")
        self.write("docs/wire-format.md", "# Wire format\n## The hello, answered\n")

    def check(self, text):
        self.write("docs/a.md", text)
        return doc_links.complaints(self.root)

    def test_what_exists_is_fine(self):
        self.assertEqual([], self.check(
            "[w](wire-format.md) [h](wire-format.md#the-hello-answered) [x](https://example.org/a)\n"
            "`src/memory/copy.h` `memory/copy` `src/*/copy.h` `docs/` `a/b` `build/dev`\n"
            "`src/memory/KIND/KIND.h`\n"
            "```\n[not a link](nowhere.md)\n```\n"))

    def test_what_does_not_exist_is_not(self):
        for text in ("[w](wire.md)", "[h](wire-format.md#goodbye)", "[h](#no-such-heading)",
                     "`src/memory/paste.h`", "`memory/paste.h`", "`docs/*.txt`"):
            with self.subTest(text=text):
                self.assertEqual(1, len(self.check(text + "\n")))


class DocSite(TreeTest):
    def setUp(self):
        super().setUp()
        self.write("docs/index.md", "```{toctree}\npool\n```\n")
        self.write("docs/pool.md")
        self.write("include/hmc/node.h", "namespace hmc {}\n")
        self.write("include/hmc/export.h")
        self.write("include/smem/host/smem.h")
        self.write("python/hmc/__init__.py", "from .errors import Lost\n__all__ = ['Node', 'Lost', '__version__']\n")
        self.write("docs/reference/cpp.md", "```{doxygenfile} hmc/node.h\n```\n")
        self.write("docs/reference/c.md", "```{doxygenfile} smem/host/smem.h\n```\n")
        self.write("docs/reference/python.md", ".. autoclass:: Node\n")

    def test_a_site_with_everything_is_fine(self):
        self.assertEqual([], doc_site.complaints(self.root))

    def test_what_is_left_out_is_not(self):
        for name, text in [
            ("docs/faq.md", ""),
            ("include/hmc/pool.h", "namespace hmc {}\n"),
            ("include/smem/host/smem_bm.h", ""),
            ("python/hmc/__init__.py", "__all__ = ['Node', 'Pool']\n"),
            ("python/hmc/__init__.py", "__all__ = []\n"),
        ]:
            with self.subTest(name=name, text=text):
                self.setUp()
                self.write(name, text)
                self.assertEqual(1, len(doc_site.complaints(self.root)))

    def test_nor_is_a_header_that_went(self):
        (self.root / "include/hmc/node.h").unlink()
        self.assertEqual(1, len(doc_site.complaints(self.root)))


class Format(TreeTest):
    def check(self, text):
        path = self.write("a.cc", text)
        tool = project.ROOT / "tools/checks/format.py"
        return subprocess.run([tool, path], capture_output=True).returncode

    def test_house_style_is_fine_and_nothing_else(self):
        self.assertEqual(0, self.check("int main() {\n  return 0;\n}\n"))
        self.assertEqual(1, self.check("int  main(){return 0;}\n"))


class Tidy(TreeTest):
    def check(self, text, batched=False):
        path = self.write("src/a.cc", text)
        if batched:
            path = self.write("unity_0_cxx.cxx", f'#include "{path}"\n')
        config = project.ROOT / ".clang-tidy"
        self.write(".clang-tidy", config.read_text())
        self.write("compile_commands.json",
                   f'[{{"directory": "{self.root}", "file": "{path}", "command": "c++ -c {path}"}}]')
        tool = project.ROOT / "tools/checks/tidy.py"
        return subprocess.run([tool, self.root, path], capture_output=True).returncode

    def test_house_style_is_fine(self):
        self.assertEqual(0, self.check(
            "constexpr int kMost = 3;\nclass Ring {\n public:\n  int size() const { return size_; }\n"
            " private:\n  int size_ = kMost;\n};\n"))

    def test_other_names_and_errors_are_not(self):
        self.assertEqual(1, self.check("class ring_buffer {};\n"))
        self.assertEqual(1, self.check("int Compute_it();\n"))
        self.assertEqual(1, self.check("constexpr int MOST = 3;\n"))
        self.assertEqual(1, self.check("#define MOST 3\n"))
        self.assertEqual(1, self.check("int broken(\n"))

    def test_the_files_of_a_batch_are_checked(self):
        self.assertEqual(0, self.check("class RingBuffer {};\n", batched=True))
        self.assertEqual(1, self.check("class ring_buffer {};\n", batched=True))

    def test_batches_of_src_are_found(self):
        ours = self.write("unity_0_cxx.cxx", f'#include "{project.ROOT}/src/base/device.cc"\n')
        other = self.write("unity_1_cxx.cxx", f'#include "{project.ROOT}/tests/a_test.cc"\n')
        single = project.ROOT / "src/base/status.cc"
        entries = [{"directory": str(self.root), "file": str(path)} for path in (ours, other, single)]
        self.write("compile_commands.json", json.dumps(entries))
        self.assertEqual(sorted([ours.resolve(), single]), sorted(tidy.sources(self.root)))


class OneDefinition(TreeTest):
    def link(self, *members):
        """Links two files that each define a polymorphic class Stream, with this member."""
        for number, member in enumerate(members):
            self.write(f"{number}.cc", f"struct Stream {{ virtual ~Stream() {{}} {member} a; }};\n"
                                       f"Stream* make{number}() {{ return new Stream; }}\n")
        command = ["c++", *one_definition.FLAGS, "-shared", "-fPIC", "0.cc", "1.cc", "-o", "both.so"]
        return subprocess.run(command, cwd=self.root, stderr=subprocess.PIPE, text=True)

    def test_one_class_in_two_files_is_fine(self):
        self.assertEqual("", self.link("int", "int").stderr)

    def test_two_classes_of_one_name_are_not(self):
        done = self.link("int", "double")
        self.assertNotEqual(0, done.returncode)
        self.assertIn("One Definition Rule", done.stderr)


if __name__ == "__main__":
    unittest.main()
