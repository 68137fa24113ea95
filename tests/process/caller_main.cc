// Does every call that can wait, each in a thread of its own and again and again, and says how long
// the longest of each took. Told what to do by lines, as target_main.cc is.

#include <sys/prctl.h>

#include <atomic>
#include <csignal>
#include <iostream>
#include <memory>
#include <mutex>
#include <sstream>
#include <thread>

#include "every_call.h"
#include "process.h"

namespace hmc::test {
namespace {

using Clock = std::chrono::steady_clock;

class Loop {
 public:
  Loop(const EveryCall& call, Caller& caller, std::chrono::milliseconds timeout)
      : call_(call), thread_([this, &caller, timeout] { run(caller, timeout); }) {}
  ~Loop() { finish(); }

  void finish() {
    ends_ = true;
    if (thread_.joinable()) thread_.join();
  }
  // Counts those alone that begin from now on, but a longest one of all.
  void mark() {
    const std::lock_guard lock(mutex_);
    ++epoch_;
    calls_ = 0;
  }
  int calls() {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  // "NAME MILLISECONDS SENTENCE", of the longest.
  std::string report() {
    const std::lock_guard lock(mutex_);
    return std::string(call_.name) + " " + std::to_string(longest_.count()) + " " + outcome_;
  }

 private:
  void run(Caller& caller, std::chrono::milliseconds timeout) {
    while (!ends_) {
      int epoch = 0;
      {
        const std::lock_guard lock(mutex_);
        epoch = epoch_;
      }
      const auto begin = Clock::now();
      const Status outcome = call_.run(caller, timeout);
      const auto took = std::chrono::ceil<std::chrono::milliseconds>(Clock::now() - begin);
      {
        const std::lock_guard lock(mutex_);
        calls_ += epoch == epoch_ ? 1 : 0;
        if (took > longest_) {
          longest_ = took;
          outcome_ = outcome.toString();
        }
      }
      pauseBetweenLooks();  // so that all of them get on
    }
  }

  const EveryCall& call_;
  std::atomic<bool> ends_{false};
  std::mutex mutex_;
  int epoch_ = 0;
  int calls_ = 0;
  std::chrono::milliseconds longest_{0};
  std::string outcome_;
  std::thread thread_;
};

class Program {
 public:
  std::string obey(const std::string& line) {
    std::istringstream in(line);
    std::string word, text;
    int number = 0;
    in >> word;
    if (word == "node") {
      in >> text >> number >> word;
      caller_ = std::make_unique<Caller>(text, std::chrono::milliseconds(number), word);
      return "ok " + caller_->introduction();
    }
    if (word == "meet") {
      std::getline(in >> std::ws, text);
      const Status met = caller_->meet(text);
      return met.ok() ? "ok" : "error " + met.toString();
    }
    if (word == "begin") {
      in >> number;
      for (const EveryCall& call : everyCall())
        loops_.push_back(std::make_unique<Loop>(call, *caller_, std::chrono::milliseconds(number)));
      return "ok";
    }
    if (word == "mark") {
      for (const auto& loop : loops_) loop->mark();
      return "ok";
    }
    if (word == "waiting") {
      in >> number;
      return "ok" + waitingFor(number);
    }
    if (word == "end") return "ok " + end();
    return "error UNKNOWN " + line;
  }

 private:
  // Which have not ended so often since the mark.
  std::string waitingFor(int calls) {
    std::string names;
    for (size_t i = 0; i < loops_.size(); ++i)
      if (loops_[i]->calls() < calls) names += std::string(" ") + everyCall()[i].name;
    return names;
  }
  std::string end() {
    for (const auto& loop : loops_) loop->finish();
    std::string all;
    for (const auto& loop : loops_) all += loop->report() + ";";
    const auto begin = Clock::now();
    loops_.clear();
    caller_->node.close();
    const auto took = std::chrono::ceil<std::chrono::milliseconds>(Clock::now() - begin);
    return all + "close " + std::to_string(took.count()) + " ;";
  }

  std::unique_ptr<Caller> caller_;
  std::vector<std::unique_ptr<Loop>> loops_;
};

}  // namespace
}  // namespace hmc::test

int main() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  hmc::test::Program program;
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << program.obey(line) << std::endl;
  }
}
