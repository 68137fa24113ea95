#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include <nlohmann/json.hpp>

#include "hmc/info.h"
#include "hmc/node.h"
#include "hmc/version.h"
#include "tools/hmc_command.h"

namespace hmc::tool {
namespace {

using testing::HasSubstr;

TEST(Command, everyHelpTeachesWithAnExample) {
  auto help = hmcCommand("--help");
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.output, HasSubstr("hmc demo"));
  for (const std::string command :
       {"demo", "litmus", "bench", "info", "doctor", "explain", "store", "pool", "completion"}) {
    EXPECT_THAT(help.output, HasSubstr("  " + command + " "));
    auto one = hmcCommand(command + " --help");
    EXPECT_EQ(one.status, 0) << command;
    EXPECT_THAT(one.output, HasSubstr("Examples:\n  hmc " + command));
  }
}

TEST(Command, aUsageErrorNamesTheFix) {
  expectHmc("docter", 2, {"Did you mean: hmc doctor"});
  expectHmc("frobnicate", 2, {"The commands are demo, "});
  expectHmc("", 2, {"Try: hmc demo"});
  expectHmc("explain", 2, {"address is required", "hmc explain worker-3:5001"});
  expectHmc("explain host:1 --kind abacus", 2, {"\"abacus\": the kinds are cpu, cuda"});
}

// A wrong command line is known before anything is measured or connected to.
TEST(Command, everyUsageErrorEndsWithTheSameStatus) {
  for (const std::string wrong :
       {"demo --bytes 4KiX", "litmus --transport pigeon", "litmus --rounds 0", "bench --from 0",
        "bench --from 1XB", "bench --from 8 --to 4", "bench --transport tcp,pigeon",
        "bench --against nobody", "bench --seconds 0", "bench --connect nowhere", "explain nowhere",
        "explain h:1 --size much", "doctor nowhere", "doctor h:99999", "store --capacity much",
        "pool run -n none true", "completion", "completion tcsh", "info --loud"}) {
    expectHmc(wrong, 2, {"--help"});
  }
}

TEST(Command, whatFailsEndsWithOne) {
  expectHmc("explain 127.0.0.1:1", 1, {"hmc doctor 127.0.0.1:1"});
  expectHmc("bench --save /no/such/folder/times", 1, {"/no/such/folder/times"});
}

TEST(Command, sizesHaveUnitsWhereverTheyAreTaken) {
  expectHmc("bench --from 1KiB --to 0.001MiB --transport pigeon", 2, {"pigeon"});  // sizes are fine
  expectHmc("bench --from 1KiB --to 2KiB --transport ipc --seconds 0.001", 0, {"1 KiB", "2 KiB"},
            "HMC_LOG=error");
  expectHmc("demo --bytes 4KiB", 0, {}, "HMC_LOG=error");
  const Outcome help = hmcCommand("bench --help");
  EXPECT_THAT(help.output, testing::ContainsRegex("--to SIZE.{1,2}64MiB"));
}

TEST(Command, knowsEveryTransportOfTheLibrary) {
  const std::string sentence = hmcCommand("litmus --transport pigeon").output;
  const auto transports = Node::create()->transports();
  for (const auto& path : transports)
    EXPECT_THAT(sentence, testing::ContainsRegex("[{,]" + path.transport + "[},]"));
  const std::string list = sentence.substr(0, sentence.find('}'));
  EXPECT_EQ(std::count(list.begin(), list.end(), ','), transports.size() - 1) << list;
}

TEST(Command, litmusFindsNoStaleBytes) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "a flag that a peer puts is a race by the thread sanitizer's rules";
#endif
  auto litmus = hmcCommand("litmus --rounds 640");
  EXPECT_EQ(litmus.status, 0) << litmus.output;
  for (const char* transport : {"ipc", "tcp"}) {
    for (const char* promise : {"a put, then a note", "a put, then a flag by put",
                                "a note, then a get", "a put, then a tag"}) {
      EXPECT_THAT(litmus.output, testing::ContainsRegex(std::string(transport) + " +" + promise +
                                                        " +640 +0 +kept"));
    }
  }
}

// One is less than a batch, 64 two batches, and 97 three and a round.
TEST(Command, litmusTriesAsOftenAsItIsAsked) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "a flag that a peer puts is a race by the thread sanitizer's rules";
#endif
  for (const std::string rounds : {"1", "64", "97"}) {
    const auto litmus = hmcCommand("litmus --transport tcp --rounds " + rounds);
    EXPECT_EQ(litmus.status, 0) << litmus.output;
    for (const char* signal : {"note", "flag by put", "get", "tag"})
      EXPECT_THAT(litmus.output,
                  testing::ContainsRegex(std::string(signal) + " +" + rounds + " +0 +kept"));
  }
}

TEST(Command, infoListsEverySetting) {
  auto info = hmcCommand("info", "HMC_LEASE_MS=1234");
  EXPECT_EQ(info.status, 0);
  for (const auto& setting : settingsReport()) {
    EXPECT_THAT(info.output, HasSubstr("  " + setting.variable + " "));
  }
  EXPECT_THAT(info.output, testing::ContainsRegex("HMC_LEASE_MS +1234 +environment"));
  EXPECT_THAT(info.output, HasSubstr(kVersion));
  auto answer = nlohmann::json::parse(hmcCommand("info --json").output);
  EXPECT_EQ(answer["build"]["version"], kVersion);
}

TEST(Command, doctorPutsOverEveryTransportAndExitsByItsVerdict) {
  auto doctor = hmcCommand("doctor --json");
  auto answer = nlohmann::json::parse(doctor.output);
  EXPECT_EQ(doctor.status, answer["healthy"] ? 0 : 1) << doctor.output;
  int puts = 0;
  for (const auto& finding : answer["findings"]) {
    const std::string what = finding["what"];
    if (what != "put over ipc" && what != "put over tcp") continue;
    ++puts;
    EXPECT_EQ(finding["level"], "ok") << finding;
    EXPECT_THAT(std::string(finding["detail"]), HasSubstr("to another process and back"));
  }
  EXPECT_EQ(puts, 2);
}

// On a host with UCX there is something to warn of: its path within one host.
TEST(Command, tablesAreFreeOfTheLogUnlessItIsAskedFor) {
  for (const std::string command : {"demo --bytes 1000", "doctor"}) {
    EXPECT_THAT(hmcCommand(command).output, testing::Not(HasSubstr("warning: "))) << command;
    EXPECT_THAT(hmcCommand(command, "HMC_LOG=debug").output, HasSubstr("debug: ")) << command;
  }
}

TEST(Command, doctorFailsWhereTheDefaultPathDoes) {
  expectHmc("doctor", 1, {"fix: unset HMC_LEASE_MS", "The default path does not work"},
            "HMC_LEASE_MS=banana");
  expectHmc(
      "doctor", 1,
      {"HMC_LEASE_MS=\"banana\"", "HMC_TRANSPORTS=\"tcp,pigeon\"", "HMC_TLS=\"maybe\"",
       "HMC_MEASUREMENTS: open /nowhere", "fix: unset HMC_LEASE_MS HMC_TLS HMC_TRANSPORTS"},
      "HMC_LEASE_MS=banana HMC_TRANSPORTS=tcp,pigeon HMC_TLS=maybe HMC_MEASUREMENTS=/nowhere");
  expectHmc("doctor unix:///nowhere/at/all", 1, {"refused"});
}

TEST(Command, doctorAndExplainLookAtALivePeer) {
  Node node = *Node::create();
  std::string listener = *node.listen("tcp://127.0.0.1:0");
  auto doctor = hmcCommand("doctor " + listener);
  EXPECT_THAT(doctor.output, testing::ContainsRegex("ok +hello"));
  EXPECT_THAT(doctor.output, testing::ContainsRegex("ok +clocks"));
  auto explain = hmcCommand("explain " + listener + " --size 4KiB", "HMC_TRANSPORTS=tcp");
  EXPECT_EQ(explain.status, 0) << explain.output;
  EXPECT_THAT(explain.output, HasSubstr("a put of 4096 bytes of cpu memory"));
  EXPECT_THAT(explain.output, testing::ContainsRegex("tcp +used +[0-9.]+ us"));
  expectHmc("explain " + listener, 1, {"hmc doctor " + listener}, "HMC_SECRET=sesame");
  expectHmc("explain " + listener, 1, {"HMC_MEASUREMENTS: open /nowhere"},
            "HMC_MEASUREMENTS=/nowhere");
}

}  // namespace
}  // namespace hmc::tool
