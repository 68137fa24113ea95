#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <sstream>

#include "every_call.h"
#include "netns.h"
#include "process.h"
#include "usable.h"

// Every fault x everything that can wait, over every way: two processes do all calls of
// every_call.h to each other when one is killed or stopped, or the network between them is cut.
// Each is target and origin. HMC_TEST_SLACK_MS says how late a call may be; without it a busy
// machine has a minute.
namespace hmc::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr milliseconds kTimeout = 300ms;
constexpr milliseconds kLease = 1000ms;

enum class Fault { kill, stop, cut };

struct Cell {
  Fault fault;
  std::string way;
};

std::string nameOf(const Cell& cell) {
  constexpr const char* kFaults[] = {"kill", "stop", "cut"};
  return std::string(kFaults[static_cast<int>(cell.fault)]) + "_" + cell.way;
}

void PrintTo(const Cell& cell, std::ostream* out) {
  *out << nameOf(cell);
}

milliseconds slack() {
  const char* wanted = std::getenv("HMC_TEST_SLACK_MS");
  return wanted ? milliseconds(std::atoi(wanted)) : kPatience;
}

std::vector<std::string> command(const std::string& space) {
  if (space.empty()) return {HMC_TEST_CALLER};
  return {"ip", "netns", "exec", space, HMC_TEST_CALLER};
}

class FaultMatrix : public testing::TestWithParam<Cell> {
 protected:
  void SetUp() override {
    const std::string transport = way() == "tls" ? "tcp" : way();
    if (const auto why = whyNotUsable(transport); !why.empty()) GTEST_SKIP() << why;
    std::string here, there;
    if (GetParam().fault == Fault::cut) {
      cable_ = std::make_unique<Cable>();
      if (!cable_->whyNot().empty()) GTEST_SKIP() << cable_->whyNot();
      here = cable_->left();
      there = cable_->right();
    }
    Process::Environment environment{{"HMC_LOG", "error"}};
    if (way() == "tls") environment["HMC_TLS"] = "required";
    one_ = std::make_unique<Process>(command(here), environment);
    other_ = std::make_unique<Process>(command(there), environment);
    const std::string node = "node " + transport + " " + std::to_string(kLease.count()) + " ";
    const Reply first = one_->ask(node + (cable_ ? Cable::leftAddress() : "127.0.0.1"));
    const Reply second = other_->ask(node + (cable_ ? Cable::rightAddress() : "127.0.0.1"));
    ASSERT_TRUE(first.ok && second.ok) << first << second;
    meet(*one_, second.text);
    meet(*other_, first.text);
    for (Process* process : {one_.get(), other_.get()}) {
      const Reply began = process->ask("begin " + std::to_string(kTimeout.count()));
      ASSERT_TRUE(began.ok) << began;
      all(*process, 2);
    }
  }

  const std::string& way() const { return GetParam().way; }

  // A busy machine may lose a connection of a short lease by itself.
  static void meet(Process& process, const std::string& introduction) {
    Reply met;
    ASSERT_TRUE(eventually([&] {
      met = process.ask("meet " + introduction);
      return met.ok;
    })) << met;
  }
  // Until all calls have ended so often since the last mark.
  static void all(Process& process, int calls) {
    Reply waiting;
    EXPECT_TRUE(eventually([&] {
      waiting = process.ask("waiting " + std::to_string(calls));
      return waiting.ok && waiting.text.empty();
    })) << "still in"
        << waiting.text;
  }
  // From the fault on each call ends twice.
  static void goesOn(Process& process) {
    ASSERT_TRUE(process.ask("mark").ok);
    all(process, 2);
  }

  // That no call took longer than it may, but for so long that the process was stopped.
  static void ended(Process& process, milliseconds stopped = 0ms) {
    const Reply reply = process.ask("end");
    ASSERT_TRUE(reply.ok) << reply;
    std::istringstream lines(reply.text);
    milliseconds latest{-kLease};
    std::string which;
    for (std::string line; std::getline(lines, line, ';');) {
      std::istringstream words(line);
      std::string name, outcome;
      long took = 0;
      words >> name >> took;
      std::getline(words, outcome);
      const milliseconds late = milliseconds(took) - mayTake(name) - stopped;
      EXPECT_LE(late.count(), slack().count())
          << name << " took " << took << " ms and ended with" << outcome;
      if (late > latest) {
        latest = late;
        which = name + ", " + std::to_string(took) + " ms:" + outcome;
      }
    }
    std::cout << "  latest: " << latest.count() << " ms after it had to end: " << which << "\n";
  }
  static milliseconds mayTake(const std::string& name) {
    for (const EveryCall& call : everyCall())
      if (name == call.name) return kTimeout + (call.ends == Ends::atFence ? 2 * kLease : 0ms);
    return 2 * kLease;  // close
  }

  std::unique_ptr<Cable> cable_;  // outlives the processes in it
  std::unique_ptr<Process> one_, other_;
};

TEST_P(FaultMatrix, everyCallEnds) {
  switch (GetParam().fault) {
    case Fault::kill:
      other_->kill();
      goesOn(*one_);
      break;
    case Fault::cut:
      ASSERT_TRUE(cable_->cut());
      goesOn(*one_);
      goesOn(*other_);
      ended(*other_);
      break;
    case Fault::stop: {
      const auto begin = std::chrono::steady_clock::now();
      other_->stop();
      goesOn(*one_);
      other_->resume();
      const auto stopped =
          std::chrono::ceil<milliseconds>(std::chrono::steady_clock::now() - begin);
      goesOn(*other_);
      ended(*other_, stopped);
      break;
    }
  }
  ended(*one_);
}

// Processes of different network namespaces share no memory, and UCX 1.13 finds no way between
// them.
bool canBeCut(const std::string& way) {
  return way == "tcp" || way == "tls";
}

std::vector<Cell> cells() {
  std::vector<Cell> all;
  for (const Fault fault : {Fault::kill, Fault::stop, Fault::cut})
    for (const char* way : {"ipc", "tcp", "tls", "ucx"})
      if (fault != Fault::cut || canBeCut(way)) all.push_back({fault, way});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Fault, FaultMatrix, testing::ValuesIn(cells()),
                         [](const auto& one) { return nameOf(one.param); });

}  // namespace
}  // namespace hmc::test
