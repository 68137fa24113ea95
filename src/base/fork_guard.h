#pragma once

#include <atomic>
#include <cstdint>

namespace hmc {

// Threads, sockets and mappings do not survive fork(); a call in the child must fail clearly, while
// what the child makes itself works. Belongs to what was made and knows in which process. The
// kernel empties the page behind this in a child, so that asking costs one load.
class ForkGuard {
 public:
  ForkGuard() : page_(&numbered()), mine_(page_->load(std::memory_order_relaxed)) {}
  bool inForkedChild() const { return page_->load(std::memory_order_relaxed) != mine_; }

 private:
  // The number of this process among those that one forked from another, never 0.
  static const std::atomic<uint64_t>& numbered();

  const std::atomic<uint64_t>* page_;
  uint64_t mine_;
};

}  // namespace hmc
