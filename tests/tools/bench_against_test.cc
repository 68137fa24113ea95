#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "bench/against/competitors.h"
#include "program.h"
#include "tools/fake_host.h"

namespace hmc::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using tool::Program;
using tool::runProgram;

constexpr const char* kHang = "exec tail -f /dev/null";

// A machine on which only the programs of the test are installed.
class Against : public tool::FakeHost {
 protected:
  Against() { usePrograms(); }
  Comparison run(const std::string& competitor, milliseconds timeout = seconds(60)) {
    Progress progress;
    return runCompetitors({competitor}, {{8, 64}, timeout}, progress);
  }
};

// The client prints the same line whatever it is asked; the server waits.
std::string ucxScript(const std::string& client) {
  return std::string("case $1 in -p) ") + kHang + ";; esac\n" + client;
}
constexpr const char* kUcxOutput =
    "echo iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n"
    "echo 1000,0.020,0.030,0.040,1.0,1.0,25000000,25000000";

TEST_F(Against, tellsHowToInstallWhoIsMissing) {
  EXPECT_THAT(run("ucx").notes,
              ElementsAre("ucx: ucx_perftest is not installed: apt install ucx-utils"));
  EXPECT_THAT(run("mpi").notes, ElementsAre(HasSubstr("apt install openmpi-bin libopenmpi-dev")));
  EXPECT_THAT(run("verbs").notes, ElementsAre(HasSubstr("apt install perftest")));
  EXPECT_THAT(run("nixl").notes, ElementsAre(HasSubstr("apt install python3")));
  install("python3", "echo \"ModuleNotFoundError: No module named 'nixl'\" >&2; exit 1");
  EXPECT_THAT(run("nixl").notes, ElementsAre("nixl: the Python package nixl is not installed: "
                                             "python3 -m pip install nixl"));
  EXPECT_THAT(run("nobody").notes, ElementsAre("nobody: not one of ucx, mpi, verbs, socket, nixl"));
}

TEST_F(Against, saysWhichProgramHangs) {
  install("ucx_perftest", std::string("echo still thinking >&2; ") + kHang);
  const auto found = run("ucx", milliseconds(300));
  EXPECT_TRUE(found.measurements.empty());
  ASSERT_EQ(6U, found.notes.size()) << "each test once, not each size";
  EXPECT_THAT(found.notes[0], HasSubstr("ucx_perftest did not end in time and was stopped"));
  EXPECT_THAT(found.notes[5], HasSubstr("no measurements"));
}

TEST_F(Against, quotesAProgramThatFails) {
  install("ucx_perftest", ucxScript("echo no transport for you >&2; exit 3"));
  const auto found = run("ucx");
  EXPECT_TRUE(found.measurements.empty());
  EXPECT_THAT(found.notes[0], HasSubstr("failed with status 3: no transport for you"));
}

TEST_F(Against, quotesAServerThatFails) {
  install("ucx_perftest",
          "case $1 in -p) echo address in use >&2; exit 1;; esac\n"
          "echo connect failed: refused >&2; exit 1");
  EXPECT_THAT(run("ucx").notes[0], HasSubstr("address in use"));
}

TEST_F(Against, asksAgainUntilTheServerListens) {
  const std::string tried = root() + "/tried";
  install("ucx_perftest",
          ucxScript("if ! [ -e " + tried + " ]; then echo >" + tried +
                    "; echo connect failed: refused >&2; exit 1; fi\n" + kUcxOutput));
  const auto found = run("ucx");
  EXPECT_EQ(14U, found.measurements.size()) << testing::PrintToString(found.notes);
}

TEST_F(Against, readsUcxsMeasurements) {
  install("ucx_perftest", ucxScript(kUcxOutput));
  install("ucx_info", "echo '# Version 9.8.7'");
  const auto found = run("ucx");
  ASSERT_EQ(14U, found.measurements.size()) << testing::PrintToString(found.notes);
  const Measurement& latency = found.measurements[0];
  EXPECT_EQ(kLatencySection, latency.section);
  EXPECT_EQ("UCX 9.8.7", latency.who);
  EXPECT_EQ("put, streamed", latency.what);
  EXPECT_EQ("shm", latency.path);
  EXPECT_EQ(8U, latency.bytes);
  EXPECT_DOUBLE_EQ(20, latency.value);
  const Measurement& bandwidth = found.measurements[1];
  EXPECT_EQ(kBandwidthSection, bandwidth.section);
  EXPECT_EQ(Unit::gigabytesPerSecond, bandwidth.unit);
  EXPECT_DOUBLE_EQ(8 * 25e6 / 1e9, bandwidth.value);
  EXPECT_EQ("tcp", found.measurements.back().path);
}

TEST_F(Against, refusesAnMpiThatIsNotOpenMpi) {
  install("mpicc", "exit 0");
  install("mpirun", "echo HYDRA build details:");
  EXPECT_THAT(run("mpi").notes, ElementsAre(HasSubstr("another MPI")));
}

TEST_F(Against, quotesAnMpiThatCannotCompile) {
  install("mpicc", "echo no compiler >&2; exit 1");
  install("mpirun", "echo 'mpirun (Open MPI) 4.1.4'");
  EXPECT_THAT(run("mpi").notes, ElementsAre(HasSubstr("mpicc failed with status 1: no compiler")));
}

TEST_F(Against, compilesAndRunsTheMpiProgram) {
  // A compiler whose programs print what mpi_window.c would.
  install("mpicc",
          "for last; do :; done\n"
          "printf '#!/bin/sh\\necho shared put one $1 50.0\\n' >$last; chmod +x $last");
  install("mpirun",
          "case $1 in --version) echo 'mpirun (Open MPI) 4.1.4';; *) shift 4; exec \"$@\";; esac");
  const auto found = run("mpi");
  ASSERT_EQ(1U, found.measurements.size()) << testing::PrintToString(found.notes);
  EXPECT_EQ("Open MPI 4.1.4", found.measurements[0].who);
  EXPECT_EQ(8U, found.measurements[0].bytes);
  EXPECT_EQ(50, found.measurements[0].value);
}

TEST_F(Against, quotesANixlThatCannotBeLoaded) {
  install("python3", "echo 'ImportError: libstdc++.so.6: too old' >&2; exit 1");
  EXPECT_THAT(run("nixl").notes, ElementsAre(HasSubstr("libstdc++.so.6: too old")));
}

// Prints its version, then where its memory is asked for and two of the sizes.
constexpr const char* kNixl =
    "case $1 in -c) echo 9.8.7;; *) echo \"$2 $3\" >&3; echo put one $4 50.0; echo get many $5 "
    "32.0;;"
    " esac";

TEST_F(Against, runsTheScriptForNixl) {
  install("python3", std::string("exec 3>") + root() + "/places\n" + kNixl);
  const auto found = run("nixl");
  ASSERT_EQ(2U, found.measurements.size()) << testing::PrintToString(found.notes);
  EXPECT_EQ("NIXL 9.8.7", found.measurements[0].who);
  EXPECT_EQ("Python put", found.measurements[0].what);
  EXPECT_EQ(kLatencySection, found.measurements[0].section);
  EXPECT_EQ(8U, found.measurements[0].bytes);
  EXPECT_EQ(50, found.measurements[0].value);
  EXPECT_EQ(kBandwidthSection, found.measurements[1].section);
  EXPECT_EQ(2, found.measurements[1].value) << "64 bytes in 32 ns are 2 GB/s";
}

TEST_F(Against, asksNixlAloneForMemoryOfADevice) {
  install("python3", std::string("exec 3>") + root() + "/places\n" + kNixl);
  Progress progress;
  const Device gpu{DeviceKind::cuda, 1};
  auto found = runCompetitors({}, {{8, 64}, seconds(60), gpu, Device{}}, progress);
  EXPECT_EQ(2U, found.measurements.size());
  EXPECT_THAT(found.notes, ElementsAre(HasSubstr("ucx: not measured"), HasSubstr("mpi: not"),
                                       HasSubstr("verbs: not"), HasSubstr("socket: not")));
  std::string places;
  std::getline(std::ifstream(root() + "/places"), places);
  EXPECT_EQ(places, "cuda:1 cpu");
  const Device npu{DeviceKind::acl, 0};
  found = runCompetitors({"nixl"}, {{8, 64}, seconds(60), npu, npu}, progress);
  EXPECT_THAT(found.notes, ElementsAre(HasSubstr("knows host memory and CUDA, not acl:0")));
}

TEST_F(Against, measuresSocketsItself) {
  Progress progress;
  const auto found = runCompetitors({"socket"}, {{65536}, seconds(60)}, progress);
  ASSERT_EQ(2U, found.measurements.size()) << testing::PrintToString(found.notes);
  for (const auto& measurement : found.measurements) EXPECT_GT(measurement.value, 0);
}

// 'Z' also for a process that is no longer there: init may or may not have collected it.
char stateOf(pid_t pid) {
  std::string word;
  char state = 'Z';
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  return stat >> word >> word >> state ? state : 'Z';
}

TEST_F(Against, endsTheWholeGroupOfAProgram) {
  const std::string pidFile = root() + "/pid";
  install("parent", "tail -f /dev/null & echo $! >" + pidFile + ".new; mv " + pidFile + ".new " +
                        pidFile + "; wait");
  const Deadline deadline = seconds(60);
  pid_t child = 0;
  {
    auto program = Program::start({{"parent"}, {}});
    ASSERT_TRUE(program.ok()) << program.status().toString();
    while (child == 0 && !deadline.passed()) std::ifstream(pidFile) >> child;
    ASSERT_GT(child, 0);
    EXPECT_TRUE((*program)->running());
    EXPECT_NE('Z', stateOf(child));
  }
  while (stateOf(child) != 'Z' && !deadline.passed()) {
  }
  EXPECT_EQ('Z', stateOf(child));
}

TEST_F(Against, doesNotWaitForWhatAProgramLeavesBehind) {
  install("parent", "tail -f /dev/null & echo done");
  auto printed = runProgram({{"parent"}, {}}, seconds(60));
  ASSERT_TRUE(printed.ok()) << printed.status().toString();
  EXPECT_EQ("done\n", *printed);
}

TEST_F(Against, givesAProgramItsSettings) {
  install("show", "echo $WHAT $HOME");
  setenv("WHAT", "ours", 1);
  EXPECT_EQ("theirs /nowhere\n",
            *runProgram({{"show"}, {"WHAT=theirs", "HOME=/nowhere"}}, seconds(60)));
  EXPECT_EQ("ours /nowhere\n", *runProgram({{"show"}, {"HOME=/nowhere"}}, seconds(60)));
  unsetenv("WHAT");
}

TEST_F(Against, namesTheSignalThatEndedAProgram) {
  install("victim", "kill -9 $$");
  EXPECT_THAT(runProgram({{"victim"}, {}}, seconds(60)).status().message(),
              HasSubstr("victim was ended by signal 9"));
}

TEST(ParseUcx, readsOldAndNewHeadingsBetweenWarnings) {
  auto answer = parseUcx(
      "[1794722328.585674] [vm:19313:0] perftest.c:405 UCX WARN something, else\n"
      "iterations,typical_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n"
      "  60,28899.074,24919.178,31863.558,321.04,251.07,40,31\n");
  ASSERT_TRUE(answer.ok()) << answer.status().toString();
  EXPECT_DOUBLE_EQ(28899074, answer->median);
  EXPECT_DOUBLE_EQ(31863558, answer->mean) << "31 messages a second would be too coarse";
  answer = parseUcx(
      "iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n"
      "100000,0.029,0.027,0.027,286.58,286.58,40000000,40000000\n");
  ASSERT_TRUE(answer.ok());
  EXPECT_DOUBLE_EQ(29, answer->median);
  EXPECT_DOUBLE_EQ(25, answer->mean) << "the rate is finer than 27 ns";
}

TEST(ParseUcx, refusesWhatHoldsNoMeasurement) {
  const char* heading =
      "iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n";
  EXPECT_FALSE(parseUcx("").ok());
  EXPECT_FALSE(parseUcx(heading).ok());
  EXPECT_FALSE(parseUcx(std::string(heading) + "1000,0.029,0.027\n").ok());
  EXPECT_FALSE(parseUcx(std::string(heading) + "1000,nan,inf,0,0,0,0,0\n").ok());
  EXPECT_FALSE(parseUcx("1000,0.029,0.027,0.027,286.58,286.58,37563174,37563174\n").ok());
}

TEST(ParseUcx, findsTheVersion) {
  EXPECT_EQ("1.13.1", parseUcxVersion("# Version 1.13.1\n# Git branch '<unknown>'\n"));
  EXPECT_EQ("1.16.0", parseUcxVersion("# Library version: 1.16.0\n"));
  EXPECT_EQ("", parseUcxVersion("nothing of the kind\n"));
}

TEST(ParseMpi, readsTimesAndSpeeds) {
  const auto measurements =
      parseMpi(
          "a warning of somebody\n"
          "shared put one 8 47.8\nown get many 1024 512\nshared put one 64 nan\nshared put one\n",
          "Open MPI 4.1.4")
          .measurements;
  ASSERT_EQ(2U, measurements.size());
  EXPECT_EQ(kLatencySection, measurements[0].section);
  EXPECT_EQ("shared window", measurements[0].path);
  EXPECT_EQ("put + flush", measurements[0].what);
  EXPECT_DOUBLE_EQ(47.8, measurements[0].value);
  EXPECT_EQ(kBandwidthSection, measurements[1].section);
  EXPECT_EQ("window", measurements[1].path);
  EXPECT_DOUBLE_EQ(2, measurements[1].value) << "1024 bytes in 512 ns are 2 GB/s";
}

TEST(ParseNixl, skipsWhatIsNoMeasurement) {
  const auto measurements =
      parseNixl(
          "2026-11-16 16:40:52 NIXL INFO    _api.py:405 Backend UCX was instantiated\n"
          "put one 8 12924.6\nput many 1048576 429701.7\nget one 64 nan\nget some 8 5\nput one\n",
          "NIXL 1.5.1")
          .measurements;
  ASSERT_EQ(2U, measurements.size());
  EXPECT_DOUBLE_EQ(12924.6, measurements[0].value);
  EXPECT_NEAR(2.44, measurements[1].value, 0.01);
}

}  // namespace
}  // namespace hmc::bench
