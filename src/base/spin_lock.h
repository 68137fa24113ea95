#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

#include "base/relax.h"

namespace hmc {

// A lock for moments: one locked instruction to take it and none to give it back, where a mutex
// needs two. Who waits for it spins and yields, so never hold it over a system call.
class SpinLock {
 public:
  void lock() {
    while (!try_lock()) waitUntilFree();
  }
  // The name that std::unique_lock wants.
  bool try_lock() {  // NOLINT
    return word_.exchange(kHeld, std::memory_order_acquire) == kFree;
  }
  void unlock() { word_.store(kFree, std::memory_order_release); }
  // For the holder: somebody waits for it.
  bool wanted() const { return word_.load(std::memory_order_relaxed) == kWanted; }

 private:
  static constexpr uint32_t kFree = 0, kHeld = 1, kWanted = 2;

  void waitUntilFree() {
    constexpr int kLooksPerYield = 64;
    for (int looks = 1; word_.load(std::memory_order_relaxed) != kFree; ++looks) {
      uint32_t held = kHeld;
      word_.compare_exchange_strong(held, kWanted, std::memory_order_relaxed);
      relax();
      if (looks % kLooksPerYield == 0) sched_yield();
    }
  }

  std::atomic<uint32_t> word_{kFree};
};

}  // namespace hmc
