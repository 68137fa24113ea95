#pragma once

#include <atomic>

namespace hmc {

// Threads, sockets and mappings do not survive fork(); a call in the child must fail clearly. The
// kernel empties the page behind this in a child, so that asking costs one load.
const std::atomic<bool>& forkSentinel();

inline bool inForkedChild() {
  static const std::atomic<bool>& inOriginal = forkSentinel();
  return !inOriginal.load(std::memory_order_relaxed);
}

}  // namespace hmc
