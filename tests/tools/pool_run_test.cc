#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "hmc/store.h"
#include "process/process.h"
#include "tools/hmc_command.h"

namespace hmc::tool {
namespace {

using testing::HasSubstr;

const std::string kRank = HMC_TEST_POOL_RANK;

// `hmc pool run` of ranks that say "ready PID" and wait.
class RunningRanks {
 public:
  RunningRanks(size_t count, std::vector<std::string> words) {
    words.insert(words.begin(), {HMC_COMMAND, "pool", "run", "-n", std::to_string(count)});
    int ends[2];
    if (pipe(ends) != 0) abort();
    pid_ = fork();
    if (pid_ == 0) {
      // A shell's background jobs ignore SIGINT.
      for (int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, SIG_DFL);
      dup2(ends[1], STDOUT_FILENO);
      close(ends[0]);
      close(ends[1]);
      std::vector<char*> pointers;
      for (auto& word : words) pointers.push_back(word.data());
      pointers.push_back(nullptr);
      execv(HMC_COMMAND, pointers.data());
      _exit(127);
    }
    close(ends[1]);
    output_ = ends[0];
    for (std::string line = next(); line.rfind("ready", 0) == 0 && ++ready < count; line = next()) {
    }
  }
  ~RunningRanks() {
    if (pid_ > 0) end(SIGKILL);
    close(output_);
  }

  // Its exit status, 128 + signal for a violent end.
  int end(int signal) {
    kill(pid_, signal);
    return wait();
  }
  int wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  // No process holds the output any more.
  bool allGone() const {
    while (next() != "") {
    }
    return ended_;
  }

  size_t ready = 0;  // ranks that have said so

 private:
  // The next line; empty at the end, or when none comes in time.
  std::string next() const {
    std::string line;
    pollfd readable{output_, POLLIN, 0};
    const int patience = static_cast<int>(std::chrono::milliseconds(test::kPatience).count());
    for (char byte = 0; byte != '\n' && poll(&readable, 1, patience) == 1; line += byte) {
      if (read(output_, &byte, 1) != 1) {
        ended_ = true;
        return "";
      }
    }
    return line;
  }

  pid_t pid_ = -1;
  int output_ = -1;
  mutable bool ended_ = false;
};

TEST(PoolRun, RanksMeetInAPool) {
  const auto outcome = hmcCommand("pool run -n 4 " + kRank + " meet");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("the ranks add up to 6"));
  for (const char* rank : {"0", "1", "2", "3"})
    EXPECT_THAT(outcome.output, HasSubstr(std::string("rank ") + rank + " of 4: ok"));
}

TEST(PoolRun, UsesTheStoreThatItIsGivenAndTheSecret) {
  StoreServerOptions options;
  options.secret = "sesame";
  const auto server = StoreServer::start("tcp://127.0.0.1:0", options);
  ASSERT_TRUE(server.ok());
  const std::string line = "pool run -n 2 --store " + server->address() + " " + kRank + " meet";
  expectHmc(line, 0, {"add up to 1"}, "HMC_SECRET=sesame");
  expectHmc(line, 1, {"secret"}, "HMC_SECRET=abracadabra");
}

TEST(PoolRun, PutsTheRankInFrontOfEachLine) {
  const auto outcome =
      hmcCommand("pool run --tag -n 2 sh -c 'echo one; echo two >&2; printf three'");
  EXPECT_EQ(outcome.status, 0);
  std::vector<std::string> lines;
  std::istringstream text(outcome.output);
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  EXPECT_THAT(lines, testing::UnorderedElementsAre("[0] one", "[0] two", "[0] three", "[1] one",
                                                   "[1] two", "[1] three"));
}

TEST(PoolRun, WhatFollowsTheProgramBelongsToIt) {
  expectHmc("pool run -n 1 echo --tag -n 7 demo -- --help", 0, {"--tag -n 7 demo -- --help\n"});
  expectHmc("pool run -n 1 -- echo --tag", 0, {"--tag\n"});
  expectHmc("pool run -n 2 sh -c 'cat; echo $HMC_POOL_RANK/$HMC_POOL_SIZE' < /dev/null", 0,
            {"0/2\n", "1/2\n"});
  EXPECT_EQ(hmcCommand("pool run -n 3 cat < /proc/sys/kernel/ostype").output, "Linux\n");
}

TEST(PoolRun, ARankThatFailsEndsTheOthersAndGivesItsStatus) {
  RunningRanks run(3, {kRank, "fail", "2", "7"});
  EXPECT_EQ(run.wait(), 7);
  EXPECT_TRUE(run.allGone());
  expectHmc("pool run -n 2 sh -c 'kill -KILL $$'", 137, {"was ended by signal 9 (Killed)"});
  expectHmc("pool run -n 1 sh -c 'exit 3'", 3, {"rank 0 ended with status 3"});
}

TEST(PoolRun, ARankThatIgnoresSigtermIsKilled) {
  RunningRanks run(2, {"--grace", "0.2", kRank, "ignore", "1"});
  ASSERT_EQ(run.ready, 2U);
  EXPECT_EQ(run.end(SIGTERM), 128 + SIGTERM);
  EXPECT_TRUE(run.allGone());
}

TEST(PoolRun, PassesSignalsOn) {
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    RunningRanks run(2, {kRank, "wait"});
    ASSERT_EQ(run.ready, 2U);
    EXPECT_EQ(run.end(signal), 128 + signal);
    EXPECT_TRUE(run.allGone());
  }
}

TEST(PoolRun, NoRankOutlivesIt) {
  RunningRanks run(4, {kRank, "wait"});
  ASSERT_EQ(run.ready, 4U);
  EXPECT_EQ(run.end(SIGKILL), 128 + SIGKILL);
  EXPECT_TRUE(run.allGone());
}

TEST(PoolRun, NothingThatARankHasStartedOutlivesIt) {
  const std::string script = kRank + " wait & wait";
  RunningRanks killed(2, {"sh", "-c", script});
  ASSERT_EQ(killed.ready, 2U);
  EXPECT_EQ(killed.end(SIGKILL), 128 + SIGKILL);
  EXPECT_TRUE(killed.allGone());
  RunningRanks failing(2, {"sh", "-c", "tail -f /dev/null & exit $HMC_POOL_RANK"});
  EXPECT_EQ(failing.wait(), 1);
  EXPECT_TRUE(failing.allGone());
}

TEST(PoolRun, AWrongCommandLineEndsWithTwoAndASentence) {
  expectHmc("pool", 2, {"hmc pool run -n 8 ./program"});
  expectHmc("pool run -n 2", 2, {"a program is missing"});
  expectHmc("pool run -n 0 true", 2, {"hmc pool run --help"});
  expectHmc("pool run true", 2, {"--ranks is required"});
  const std::string noProgram = testing::TempDir() + "hmc_no_program_" + std::to_string(getpid());
  std::ofstream(noProgram) << "neither a script nor a program";
  chmod(noProgram.c_str(), S_IRWXU);
  expectHmc("pool run -n 1 " + noProgram, 127, {"the system cannot run " + noProgram});
  std::remove(noProgram.c_str());
  expectHmc("pool run -n 2 /nonexistent/program", 2, {"there is no program /nonexistent/program"});
}

}  // namespace
}  // namespace hmc::tool
