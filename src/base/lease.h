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

  explicit Lease(std::chrono::milliseconds length)
      : length_(length), heard_(Clock::now()), confirmed_(heard_.load()) {}

  // A heartbeat arrived. False when it came too late.
  bool hear() {
    // Once: who is stopped after this renews nothing when it goes on.
    const auto now = Clock::now();
    if (expiredAt(now)) return false;
    heard_.store(now, std::memory_order_relaxed);
    return true;
  }
  bool expired() { return expiredAt(Clock::now()); }
  // Was nothing heard for so long, whatever has ended it?
  bool silent() const { return silentAt(Clock::now()); }

  // For who writes into the other side's memory by itself, where nobody looks at a lease: may the
  // other side still count on us? It has heard of us after we sent the last heartbeat that it
  // answered, so it gives us up later than this says no.
  // Revoking it changes nothing here: then the link is closed, too.
  bool held() const { return heldAt(Clock::now()); }
  // For who applies bytes on the other side's behalf, which may have given the link up. What is
  // heard now may have been said long ago, before a stop of ours: only an answer to a heartbeat of
  // ours shows how long ago the other side was still there.
  bool mayApply() {
    const auto now = Clock::now();
    return !expiredAt(now) && heldAt(now);
  }
  // The other side has answered a heartbeat that was sent then.
  void confirm(Clock::time_point sent) { confirmed_.store(sent, std::memory_order_relaxed); }

  // The end of a channel: whatever arrives now comes from nobody.
  void revoke() { expired_.store(true, std::memory_order_relaxed); }
  // The other side has said goodbye, and moves nothing more.
  void part() { parted_.store(true, std::memory_order_relaxed); }
  bool parted() const { return parted_.load(std::memory_order_relaxed); }

  std::chrono::milliseconds length() const { return length_; }

 private:
  bool heldAt(Clock::time_point now) const {
    return now - confirmed_.load(std::memory_order_relaxed) <= length_;
  }
  bool silentAt(Clock::time_point now) const {
    return now - heard_.load(std::memory_order_relaxed) > length_;
  }
  bool expiredAt(Clock::time_point now) {
    if (expired_.load(std::memory_order_relaxed)) return true;
    if (!silentAt(now)) return false;
    expired_.store(true, std::memory_order_relaxed);
    return true;
  }

  const std::chrono::milliseconds length_;
  std::atomic<Clock::time_point> heard_;
  std::atomic<Clock::time_point> confirmed_;
  std::atomic<bool> expired_{false};
  std::atomic<bool> parted_{false};
};

}  // namespace hmc
