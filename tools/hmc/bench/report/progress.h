#pragma once

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>

namespace hmc::bench {

// One line on a terminal that says what a long run is doing; nothing where `fd` is no terminal.
// The destructor erases it. For one thread.
class Progress {
 public:
  explicit Progress(size_t steps = 0, int fd = STDERR_FILENO);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // There is more to do than was known.
  void expect(size_t steps) { steps_ += steps; }
  // And less: that many steps will not happen.
  void skip(size_t steps) { steps_ -= std::min(steps, steps_); }
  // The next step begins.
  void next(const std::string& what);
  // Takes the line away, for somebody who wants to print. next() brings it back.
  void erase();

 private:
  using Clock = std::chrono::steady_clock;

  const int fd_;
  const bool shown_;
  const Clock::time_point started_ = Clock::now();
  size_t steps_;
  size_t begun_ = 0;
  bool drawn_ = false;
};

// "[3/12] put 64 KiB, about 40 s left". `elapsed` is what the steps before this one took.
std::string progressLine(const std::string& what, size_t step, size_t steps,
                         std::chrono::duration<double> elapsed);

}  // namespace hmc::bench
