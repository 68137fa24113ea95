#pragma once

#include <atomic>
#include <chrono>

#include "hmc/deadline.h"

namespace hmc {

// How long one side of a link may act on the other side's words without hearing from it. The
// control thread hears; a transport's service thread asks before it applies a byte. Once the gap
// between two heartbeats was longer than the lease it stays expired, even if heartbeats that were
// queued meanwhile arrive later: a process that was stopped wakes up fenced.
class Lease {
 public:
  using Clock = Deadline::Clock;

  explicit Lease(std::chrono::milliseconds length) : length_(length), heard_(Clock::now()) {}

  // A heartbeat arrived. False when it came too late.
  bool hear() {
    if (expired()) return false;
    heard_.store(Clock::now(), std::memory_order_relaxed);
    return true;
  }
  bool expired() {
    if (expired_.load(std::memory_order_relaxed)) return true;
    if (!silent()) return false;
    expired_.store(true, std::memory_order_relaxed);
    return true;
  }
  // Was nothing heard for so long, whatever has ended it?
  bool silent() const { return Clock::now() - heard_.load(std::memory_order_relaxed) > length_; }
  // The end of a channel: whatever arrives now comes from nobody.
  void revoke() { expired_.store(true, std::memory_order_relaxed); }
  std::chrono::milliseconds length() const { return length_; }

 private:
  const std::chrono::milliseconds length_;
  std::atomic<Clock::time_point> heard_;
  std::atomic<bool> expired_{false};
};

}  // namespace hmc
