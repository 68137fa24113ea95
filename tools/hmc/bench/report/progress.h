#pragma once

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace hmc::bench {

// One line on a terminal that says what a long run is doing; nothing where `fd` is no terminal.
// The destructor erases it. For one thread.
class Progress {
 public:
  // `seconds`: what each step will probably take. The steps that are over correct that.
  explicit Progress(std::vector<double> seconds = {}, int fd = STDERR_FILENO);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // There is more to do than was known, of so many seconds each.
  void expect(size_t steps, double seconds = 2) { seconds_.insert(seconds_.end(), steps, seconds); }
  // And less: that many of the last steps will not happen.
  void skip(size_t steps) { seconds_.resize(seconds_.size() - std::min(steps, seconds_.size())); }
  // The next step begins.
  void next(const std::string& what);
  // Takes the line away, for somebody who wants to print. next() brings it back.
  void erase();

 private:
  using Clock = std::chrono::steady_clock;

  const int fd_;
  const bool shown_;
  const Clock::time_point started_ = Clock::now();
  std::vector<double> seconds_;
  size_t begun_ = 0;
  bool drawn_ = false;
};

// "[3/12] put 64 KiB, about 40 s left". `seconds` is what each step was expected to take, `elapsed`
// what the steps before this one took.
std::string progressLine(const std::string& what, size_t step, const std::vector<double>& seconds,
                         std::chrono::duration<double> elapsed);

}  // namespace hmc::bench
