#pragma once

#include <atomic>
#include <cstdint>

#include "hmc/status.h"

namespace hmc {

// Threads, sockets and mappings do not survive fork(): what has them keeps one of these, and fails
// clearly in a child of the process that made it. The child may make its own. The kernel empties
// the page behind this in a child, so that asking costs one load.
class ForkGuard {
 public:
  ForkGuard() : made_(mark()) {}

  bool inChild() const {
    static const std::atomic<uint32_t>& here = word();
    return here.load(std::memory_order_relaxed) != made_;
  }
  // What to say then.
  static Status refusal();

 private:
  static std::atomic<uint32_t>& word();
  static uint32_t mark();

  uint32_t made_;
};

}  // namespace hmc
