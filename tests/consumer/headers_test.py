"""What the public headers tell programs: which C++ they need, and what must not be dropped."""

import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

INCLUDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "include")
COMPILER = os.environ.get("CXX", "c++")
HEADERS = sorted(name for name in os.listdir(INCLUDE) if name.endswith(".h")) + sorted(
    "hmc/" + name for name in os.listdir(os.path.join(INCLUDE, "hmc")))
# The rest is for C++14 programs.
MODERN = {"hmc/%s.h" % name for name in (
    "collective", "cpp17", "deadline", "grant", "info", "measurements", "node", "node_options", "pool",
    "reports", "result", "store")}


def compile_text(text, standard, *options):
    """The compiler's answer: its status and what it prints."""
    done = subprocess.run(
        [COMPILER, "-std=c++%d" % standard, "-fsyntax-only", "-I" + INCLUDE, "-x", "c++", "-"]
        + list(options), input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        universal_newlines=True, timeout=240, check=False)
    return done.returncode, done.stdout


def first_error(standard):
    """Of every header: its first error, or None."""
    def of(header):
        status, printed = compile_text("#include <%s>\n" % header, standard, "-Wfatal-errors")
        found = re.search(r"error: (.*)", printed)
        assert (status == 0) == (found is None), printed
        return found and found.group(1)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(HEADERS, pool.map(of, HEADERS)))


class Headers(unittest.TestCase):
    def test_those_of_the_manuals_compile_as_cpp14_and_the_others_say_that_they_need_cpp17(self):
        for header, error in first_error(14).items():
            if header in MODERN:
                self.assertIn("need C++17: compile with -std=c++17", error or "", header)
            else:
                self.assertIsNone(error, header)

    def test_below_cpp14_the_first_error_says_what_to_do(self):
        plain = {"hmc/access.h", "hmc/block.h", "hmc/export.h", "hmc/tls.h", "hmc/version.h"}
        for header, error in first_error(11).items():
            if header not in plain:
                self.assertRegex(error or "", r"needs? C\+\+1[47]: compile with -std", header)

    def test_no_name_is_generic_but_those_that_the_manuals_fix(self):
        self.assertEqual([name for name in HEADERS if "/" not in name],
                         ["hmc.h", "mem.h", "status.h"])

    def test_a_handle_whose_loss_undoes_the_call_is_not_dropped_unnoticed(self):
        calls = ["node.allocate(\"a\", 8)", "node.registerMemory(\"a\", nullptr, 8)",
                 "node.nextCall()", "peer.open(\"a\")", "region.startPut(local, blocks)",
                 "region.startGet(local, blocks)", "local.grant()", "grant.narrow({})",
                 "hmc::Node::create()", "hmc::CompletionQueue::create()",
                 "hmc::Pool::join(\"\", {})", "pool.startCopy({})", "hmc::StoreServer::start()",
                 "hmc::Gathering::begin({})", "hmc::Collective::begin({})"]
        lines = "\n".join("  %s;" % call for call in calls)
        status, printed = compile_text(
            "#include <hmc/collective.h>\n#include <hmc/pool.h>\n#include <hmc/store.h>\n"
            "void f(hmc::Node node, hmc::Peer peer, hmc::RemoteRegion region, hmc::Pool pool,\n"
            "       hmc::LocalRegion local, hmc::Grant grant, std::vector<hmc::Block> blocks) {\n"
            "%s\n}\n" % lines, 17)
        self.assertEqual(status, 0, printed)
        warned = {int(line) for line in re.findall(r":(\d+):\d+: warning: .*nodiscard", printed)}
        self.assertEqual([call for place, call in enumerate(calls, 6) if place not in warned], [])

    @unittest.skipUnless(shutil.which("doxygen"), "there is no doxygen here")
    def test_doxygen_finds_every_class_and_function_described(self):
        with tempfile.TemporaryDirectory() as folder:
            settings = "\n".join([
                "INPUT=%s/hmc %s/hmc.h" % (INCLUDE, INCLUDE), "OUTPUT_DIRECTORY=" + folder,
                "GENERATE_HTML=NO", "GENERATE_LATEX=NO", "GENERATE_XML=YES", "QUIET=YES",
                "MACRO_EXPANSION=YES", "EXPAND_ONLY_PREDEF=YES", "PREDEFINED=HMC_API=",
                "WARN_IF_UNDOCUMENTED=YES"])
            done = subprocess.run(["doxygen", "-"], input=settings, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, universal_newlines=True, timeout=240,
                                  check=True)
        missing = [line for line in done.stdout.splitlines() if "is not documented" in line
                   and "(variable)" not in line  # whose names say it
                   and not re.search(r"operator=\(|\(\w+ ?&&\) noexcept", line)]
        self.assertEqual(missing, [])


if __name__ == "__main__":
    sys.exit(unittest.main())
