#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "tools/fake_host.h"
#include "tools/hmc_command.h"

// `hmc bench` as a whole, with times too short to mean anything.

namespace hmc::tool {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr const char* kShort = "bench --from 8 --to 64B --seconds 0.002 ";

class BenchCommand : public FakeHost {
 protected:
  // Beside the home directory, which must stay empty.
  const std::string cookie_ = testing::TempDir() + "hmc_bench_cookie_" + std::to_string(getpid());
  // What it logs would lie between the lines of its output.
  const std::string quiet_ =
      "-u HMC_MEASUREMENTS HMC_LOG=error HMC_COOKIE=" + cookie_ + " HOME=" + root();
  const std::string file_ = root() + "/times";

  static std::string textOf(const std::string& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

TEST_F(BenchCommand, measuresEveryTransportBesideItsCeilingAndVerifies) {
  auto outcome = hmcCommand(std::string(kShort) + "--verify --json", quiet_);
  ASSERT_EQ(outcome.status, 0) << outcome.output;
  ASSERT_TRUE(json::accept(outcome.output)) << outcome.output;
  auto run = json::parse(outcome.output);
  std::set<std::string> seen;
  for (const auto& measurement : run["measurements"]) {
    seen.insert(measurement["section"].get<std::string>() + "/" +
                measurement["what"].get<std::string>() + "/" +
                measurement["path"].get<std::string>());
    EXPECT_GT(measurement["value"].get<double>(), 0) << measurement;
    EXPECT_GT(measurement["ceiling"]["value"].get<double>(), 0) << measurement;
  }
  for (const char* path : {"ipc", "tcp"}) {
    for (const char* section : {"blocking latency", "bandwidth"}) {
      for (const char* what : {"put", "get"}) {
        EXPECT_EQ(seen.count(std::string(section) + "/" + what + "/" + path), 1U)
            << section << " " << what << " " << path;
      }
    }
  }
  EXPECT_EQ(seen.count("control/tag round trip/shared memory"), 1U);
  EXPECT_EQ(seen.count("control/tag round trip/tcp"), 1U);
  EXPECT_THAT(run["header"]["transports"].get<std::string>(), HasSubstr("ipc (mapped)"));
}

TEST_F(BenchCommand, measuresEveryTargetAlsoWithASecret) {
  auto outcome =
      hmcCommand("bench --targets --seconds 0.002 --json", quiet_ + " HMC_SECRET=shared");
  ASSERT_TRUE(json::accept(outcome.output)) << outcome.output;
  auto run = json::parse(outcome.output);
  bool allMet = true;
  for (const auto& target : run["targets"]) {
    EXPECT_GT(target["ratio"].get<double>(), 0) << target;
    allMet = allMet && target["met"].get<bool>();
  }
  // Two of the eighteen need a second core.
  EXPECT_GE(run["targets"].size(), 16U);
  EXPECT_EQ(run["targets"].back()["what"], "idle with 32 peers") << "the last one";
  EXPECT_EQ(outcome.status, allMet ? 0 : 1);
}

TEST_F(BenchCommand, printsTablesAndLeavesNoFile) {
  auto table = hmcCommand(std::string(kShort) + "--transport ipc", quiet_);
  ASSERT_EQ(table.status, 0) << table.output;
  EXPECT_THAT(table.output, HasSubstr("blocking latency\n"));
  EXPECT_THAT(table.output, HasSubstr("of ceiling"));
  EXPECT_THAT(table.output, testing::Not(HasSubstr("tcp")));
  EXPECT_TRUE(std::filesystem::is_empty(root())) << "something was left in the home directory";
}

TEST_F(BenchCommand, savesTimesWhereAFileIsNamed) {
  expectHmc(std::string(kShort) + "--transport ipc --csv --save " + file_, 0, {"\nmeasurement,"},
            quiet_);
  EXPECT_THAT(textOf(file_), HasSubstr("ipc cpu put 8 "));
  EXPECT_THAT(textOf(file_), HasSubstr("ipc cpu get 64 "));
}

TEST_F(BenchCommand, refusesAFileThatCannotBeSavedBeforeItMeasures) {
  auto outcome = hmcCommand(std::string(kShort) + "--save " + root() + "/no/such/folder", quiet_);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.output, testing::StartsWith("hmc: write " + root() + "/no/such/folder"));
}

TEST_F(BenchCommand, leavesPicturesToPython) {
  expectHmc("bench --plot out.png", 2, {"python3 -m hmc bench --plot out.png"});
}

TEST_F(BenchCommand, measuresBetweenTwoThatAPersonStarted) {
  FILE* server = popen(("exec 2>&1; HMC_COOKIE=" + cookie_ +
                        " " HMC_COMMAND " bench --listen 127.0.0.1:0 & echo $!; wait")
                           .c_str(),
                       "r");
  ASSERT_NE(server, nullptr);
  char line[512] = "";
  ASSERT_NE(fgets(line, sizeof(line), server), nullptr);
  const pid_t pid = std::stoi(line);
  std::string command;
  while (command.empty() && fgets(line, sizeof(line), server) != nullptr) {
    const std::string said = line;
    if (said.find("hmc bench --connect ") != std::string::npos)
      command = said.substr(said.find("bench"), said.size() - said.find("bench") - 1);
  }
  EXPECT_FALSE(command.empty()) << "the server printed no command line";
  auto client = hmcCommand(command + " --from 8 --to 64 --seconds 0.002", quiet_);
  kill(pid, SIGTERM);
  pclose(server);
  EXPECT_EQ(client.status, 0) << client.output;
  EXPECT_THAT(client.output, HasSubstr("at tcp://127.0.0.1:"));
  EXPECT_THAT(client.output, HasSubstr("raw socket"));
}

TEST_F(BenchCommand, measuresWhatChecksumsAndTlsCostBesidePlainTcp) {
  const std::string words = "bench --protections --from 1024 --to 4096 --seconds 0.01 --json";
  auto outcome = hmcCommand(words, quiet_);
  ASSERT_EQ(outcome.status, 0) << outcome.output;
  ASSERT_TRUE(json::accept(outcome.output)) << outcome.output;
  auto run = json::parse(outcome.output);
  ASSERT_EQ(run["measurements"].size(), 12U) << "three sizes, put and get, checked and encrypted";
  std::set<std::string> paths;
  for (const auto& measurement : run["measurements"]) {
    paths.insert(measurement["path"].get<std::string>());
    EXPECT_GT(measurement["value"].get<double>(), 0) << measurement;
    EXPECT_EQ(measurement["ceiling"]["name"], "plain tcp") << measurement;
    EXPECT_GT(measurement["ceiling"]["value"].get<double>(), 0) << measurement;
  }
  EXPECT_EQ(paths, (std::set<std::string>{"tcp (checked, 2 streams)", "tcp (tls, 2 streams)"}));
  auto beside = hmcCommand(words, quiet_ + " HMC_TLS=required HMC_SECRET=hush");
  EXPECT_EQ(beside.status, 1);
  EXPECT_THAT(beside.output, HasSubstr("unset both"));
}

TEST_F(BenchCommand, measuresTheFirstPutIntoNewRegionsBesideLaterOnes) {
  auto outcome = hmcCommand("bench --first-put --from 32MiB --to 64MiB --json", quiet_);
  ASSERT_TRUE(json::accept(outcome.output)) << outcome.output;
  auto run = json::parse(outcome.output);
  ASSERT_EQ(run["targets"].size(), 2U) << run;
  EXPECT_EQ(run["targets"][1]["what"], "first put of 64 MiB");
  EXPECT_GT(run["targets"][1]["ratio"].get<double>(), 0);
  expectHmc("bench --first-put --targets", 2);
}

TEST_F(BenchCommand, comparesAllPathsWithTheOneThatIsChosenAndSavesTheTimes) {
  const std::string words = "bench --all-paths --from 8 --to 64 --seconds 0.01 ";
  auto outcome = hmcCommand(words + "--json --save " + file_, quiet_);
  ASSERT_EQ(outcome.status, 0) << outcome.output;
  ASSERT_TRUE(json::accept(outcome.output)) << outcome.output;
  auto run = json::parse(outcome.output);
  ASSERT_EQ(run["paths"].size(), 8U) << "four sizes, put and get";
  for (const auto& row : run["paths"]) {
    EXPECT_GT(row["times"]["ipc"].get<double>(), 0) << row;
    EXPECT_GT(row["times"]["tcp"].get<double>(), row["times"]["ipc"].get<double>()) << row;
    EXPECT_EQ(row["taken"], "ipc") << row;
    EXPECT_EQ(row["quickest"], "ipc") << row;
    EXPECT_TRUE(row["well_chosen"].get<bool>()) << row;
  }
  EXPECT_THAT(textOf(file_), HasSubstr("\nipc cpu get 64 "));
  EXPECT_THAT(textOf(file_), HasSubstr("\ntcp cpu put 8 "));
  expectHmc(words, 0, {"8 of 8 well chosen"}, quiet_ + " HMC_MEASUREMENTS=" + file_);
  expectHmc("bench --all-paths --targets", 2);
}

TEST_F(BenchCommand, aChoiceThatIsNotTheBestFailsAndSavedTimesPutItRight) {
  write("times",
        "version 1\nipc cpu put 8 900000\ntcp cpu put 8 1\n"
        "ipc cpu get 8 900000\ntcp cpu get 8 1\n");
  const std::string words =
      "bench --all-paths --transport ipc,tcp --from 8 --to 8 --seconds 0.01 --save " + file_;
  const std::string chosenByFile = quiet_ + " HMC_MEASUREMENTS=" + file_;
  expectHmc(words, 1, {"NOT best: ipc is "}, chosenByFile);
  expectHmc(words, 0, {}, chosenByFile);
}

TEST_F(BenchCommand, saysWhatIsWrongWithWhatItWasAsked) {
  expectHmc(std::string(kShort) + "--transport carrier-pigeon", 2, {"carrier-pigeon", "ipc"});
  expectHmc("bench --connect 127.0.0.1:1", 1, {"127.0.0.1:1"});
  for (const char* wrong : {"--from 0", "--csv --json", "--from 128 --to 64"})
    expectHmc(std::string("bench ") + wrong, 2);
}

}  // namespace
}  // namespace hmc::tool
