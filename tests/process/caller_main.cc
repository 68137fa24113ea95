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

#include "caller.h"
#include "process.h"

namespace hmc::test {
namespace {

using Clock = std::chrono::steady_clock;

std::chrono::milliseconds since(Clock::time_point begin) {
  return std::chrono::ceil<std::chrono::milliseconds>(Clock::now() - begin);
}

std::string oneLine(std::string text) {
  for (char& letter : text) letter = letter == '\n' || letter == ';' ? '|' : letter;
  return text;
}

class Loop {
 public:
  Loop(Call call, std::chrono::milliseconds timeout)
      : call_(std::move(call)), timeout_(timeout), thread_([this] { run(); }) {}
  ~Loop() { finish(); }

  void stop() { ends_ = true; }
  void finish() {
    stop();
    if (thread_.joinable()) thread_.join();
  }
  // Counts those alone that begin from now on, but a longest one of all.
  void mark() {
    const std::lock_guard lock(mutex_);
    ++epoch_;
    calls_ = 0;
  }
  // Whether so many have ended since the mark, and one has succeeded, if that can be; or what the
  // last one said.
  bool waitsFor(int calls, std::string& why) {
    const std::lock_guard lock(mutex_);
    if (calls_ >= calls && (worked_ || !call_.works)) return false;
    why += std::string(" ") + call_.name + " (" + std::to_string(calls_) + ": " + last_ + ")";
    return true;
  }
  // Of the longest.
  std::string report() {
    const std::lock_guard lock(mutex_);
    return reported(call_.name, longest_, timeout_ + call_.later, outcome_);
  }
  // "NAME MILLISECONDS THE_MOST SENTENCE;"
  static std::string reported(const std::string& name, std::chrono::milliseconds took,
                              std::chrono::milliseconds most, const std::string& outcome) {
    return name + " " + std::to_string(took.count()) + " " + std::to_string(most.count()) + " " +
           outcome + ";";
  }

 private:
  void run() {
    while (!ends_) {
      int epoch = 0;
      bool counts = false;
      {
        const std::lock_guard lock(mutex_);
        epoch = epoch_;
        counts = worked_ || !call_.works;
      }
      // Two that need each other would miss each other on a slow machine, if they gave up too
      // early.
      constexpr std::chrono::seconds kFirst{10};
      const auto begin = Clock::now();
      const Status outcome = call_.run(counts ? Timeout(timeout_) : Timeout(kFirst));
      note(epoch, counts ? since(begin) : std::chrono::milliseconds(0), outcome);
      if (call_.after) call_.after();
      pauseBetweenLooks();  // so that all of them get on
    }
  }
  void note(int epoch, std::chrono::milliseconds took, const Status& outcome) {
    const std::lock_guard lock(mutex_);
    calls_ += epoch == epoch_ ? 1 : 0;
    worked_ = worked_ || outcome.ok();
    last_ = oneLine(outcome.toString());
    if (took <= longest_) return;
    longest_ = took;
    outcome_ = last_;
  }

  const Call call_;
  const std::chrono::milliseconds timeout_;
  std::atomic<bool> ends_{false};
  std::mutex mutex_;
  int epoch_ = 0;
  int calls_ = 0;
  bool worked_ = false;
  std::chrono::milliseconds longest_{0};
  std::string outcome_, last_;
  std::thread thread_;
};

class Program {
 public:
  std::string obey(const std::string& line) {
    std::istringstream in(line);
    std::string word, text;
    int number = 0;
    in >> word;
    if (word == "caller") return make(in);
    if (word == "meet") {
      std::getline(in >> std::ws, text);
      const Status met = caller_->meet(text);
      return met.ok() ? "ok" : "error " + oneLine(met.toString());
    }
    if (word == "begin") {
      in >> number;
      for (Call& call : caller_->calls())
        loops_.push_back(
            std::make_unique<Loop>(std::move(call), std::chrono::milliseconds(number)));
      return "ok";
    }
    if (word == "mark") {
      for (const auto& loop : loops_) loop->mark();
      return "ok";
    }
    if (word == "waiting") {
      in >> number;
      for (const auto& loop : loops_) loop->waitsFor(number, text);
      return "ok" + text;
    }
    if (word == "end") return "ok " + end();
    return "error UNKNOWN " + line;
  }

 private:
  // "caller WHAT TRANSPORT LEASE_MS HOST FIRST"
  std::string make(std::istream& in) {
    std::string what;
    int lease = 0;
    Circumstances circumstances{};
    in >> what >> circumstances.transport >> lease >> circumstances.host >> circumstances.first;
    circumstances.lease = std::chrono::milliseconds(lease);
    caller_ = makeCaller(what, circumstances);
    return "ok " + caller_->introduction();
  }
  std::string end() {
    for (const auto& loop : loops_) loop->stop();
    for (const auto& loop : loops_) loop->finish();
    std::string all;
    for (const auto& loop : loops_) all += loop->report();
    loops_.clear();
    const auto most = caller_->ends();
    const auto begin = Clock::now();
    caller_.reset();
    return all + Loop::reported("close", since(begin), most, "");
  }

  std::unique_ptr<Caller> caller_;
  std::vector<std::unique_ptr<Loop>> loops_;
};

}  // namespace

std::unique_ptr<Caller> makeCaller(const std::string& what, const Circumstances& circumstances) {
  if (what == "node") return makeNodeCaller(circumstances);
  if (what == "pool") return makePoolCaller(circumstances);
  if (what == "collective") return makeCollectiveCaller(circumstances);
  if (what == "store") return makeStoreCaller(circumstances);
  if (what == "communicator") return makeCommunicatorCaller(circumstances);
  if (what == "memfabric") return makeMemFabricCaller(circumstances);
  return makeCtrlCaller(circumstances);
}

}  // namespace hmc::test

int main() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  hmc::test::Program program;
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << program.obey(line) << std::endl;
  }
}
