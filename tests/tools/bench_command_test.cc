#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "tools/hmc_command.h"

// `hmc bench` as a whole, with times too short to mean anything.

namespace hmc::tool {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr const char* kShort = "bench --from 8 --to 64 --seconds 0.002 ";

class BenchCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = testing::TempDir() + "hmc-bench-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    // What it logs would lie between the lines of its output.
    environment_ = "HMC_LOG=error HMC_FIGURES=" + folder_ + "/measurements";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
  std::string environment_;
};

TEST_F(BenchCommand, measuresEveryTransportBesideItsCeilingAndVerifies) {
  auto outcome = hmcCommand(std::string(kShort) + "--verify --json", environment_);
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
      hmcCommand("bench --targets --seconds 0.002 --json", environment_ + " HMC_SECRET=shared");
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

TEST_F(BenchCommand, printsTablesCsvAndAPlot) {
  const std::string plot = folder_ + "/out.svg";
  auto table = hmcCommand(std::string(kShort) + "--transport ipc --plot " + plot, environment_);
  ASSERT_EQ(table.status, 0) << table.output;
  EXPECT_THAT(table.output, HasSubstr("blocking latency\n"));
  EXPECT_THAT(table.output, HasSubstr("of ceiling"));
  EXPECT_THAT(table.output, testing::Not(HasSubstr("tcp")));
  std::ifstream drawn(plot);
  std::string first;
  std::getline(drawn, first);
  EXPECT_THAT(first, HasSubstr("<")) << "an SVG file";
  auto csv = hmcCommand(std::string(kShort) + "--transport ipc --csv", environment_);
  ASSERT_EQ(csv.status, 0) << csv.output;
  EXPECT_THAT(csv.output, HasSubstr("\nfigure,"));
}

TEST_F(BenchCommand, saysBeforeItMeasuresThatAPictureCannotBeDrawn) {
  auto outcome = hmcCommand(std::string(kShort) + "--plot " + folder_ + "/out.png",
                            environment_ + " PATH=/nonexistent");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.output, testing::StartsWith("hmc: a PNG needs a program"));
}

TEST_F(BenchCommand, leavesItsTimesForExplain) {
  auto bench = hmcCommand(std::string(kShort) + "--transport ipc", environment_);
  ASSERT_EQ(bench.status, 0) << bench.output;
  std::ifstream file(folder_ + "/measurements");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_THAT(text, HasSubstr("ipc cpu put 8 "));
  EXPECT_THAT(text, HasSubstr("ipc cpu get 64 "));
}

TEST_F(BenchCommand, measuresBetweenTwoThatAPersonStarted) {
  FILE* server =
      popen("exec 2>&1; " HMC_COMMAND " bench --listen 127.0.0.1:0 & echo $!; wait", "r");
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
  auto client = hmcCommand(command + " --from 8 --to 64 --seconds 0.002", environment_);
  kill(pid, SIGTERM);
  pclose(server);
  EXPECT_EQ(client.status, 0) << client.output;
  EXPECT_THAT(client.output, HasSubstr("at tcp://127.0.0.1:"));
  EXPECT_THAT(client.output, HasSubstr("raw socket"));
}

TEST_F(BenchCommand, comparesAllPathsWithTheOneThatIsTakenAndKeepsTheTimes) {
  const std::string words = "bench --all-paths --from 8 --to 64 --seconds 0.01 ";
  auto outcome = hmcCommand(words + "--json", environment_);
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
  std::ifstream kept(folder_ + "/measurements");
  const std::string lines{std::istreambuf_iterator<char>(kept), {}};
  EXPECT_THAT(lines, HasSubstr("\nipc cpu get 64 "));
  EXPECT_THAT(lines, HasSubstr("\ntcp cpu put 8 "));
  EXPECT_THAT(hmcCommand(words, environment_).output, HasSubstr("8 of 8 well chosen"));
  EXPECT_EQ(hmcCommand("bench --all-paths --targets").status, 2);
}

TEST_F(BenchCommand, aChoiceThatIsNotTheBestFailsAndTheNextRunHasLearntFromIt) {
  std::ofstream(folder_ + "/measurements") << "version 1\nipc cpu put 8 900000\ntcp cpu put 8 1\n"
                                              "ipc cpu get 8 900000\ntcp cpu get 8 1\n";
  const std::string words = "bench --all-paths --transport ipc,tcp --from 8 --to 8 --seconds 0.01";
  auto misled = hmcCommand(words, environment_);
  EXPECT_EQ(misled.status, 1) << misled.output;
  EXPECT_THAT(misled.output, HasSubstr("NOT best: ipc is "));
  auto wiser = hmcCommand(words, environment_);
  EXPECT_EQ(wiser.status, 0) << wiser.output;
}

TEST_F(BenchCommand, saysWhatIsWrongWithWhatItWasAsked) {
  auto transport = hmcCommand(std::string(kShort) + "--transport carrier-pigeon");
  EXPECT_EQ(transport.status, 1);
  EXPECT_THAT(transport.output, HasSubstr("carrier-pigeon"));
  EXPECT_THAT(transport.output, HasSubstr("ipc"));
  auto nobody = hmcCommand("bench --connect 127.0.0.1:1");
  EXPECT_EQ(nobody.status, 1);
  EXPECT_THAT(nobody.output, HasSubstr("127.0.0.1:1"));
  EXPECT_EQ(hmcCommand("bench --from 0").status, 2);
  EXPECT_EQ(hmcCommand("bench --csv --json").status, 2);
  EXPECT_EQ(hmcCommand("bench --from 128 --to 64").status, 2);
}

}  // namespace
}  // namespace hmc::tool
