#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

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

// Owns something whose end talks to threads or through sockets, which are the parent's in the child
// of a fork: there it is left as it is. Whatever it holds stays, too.
template <class T>
std::shared_ptr<T> ownedHere(T* made) {
  return std::shared_ptr<T>(made, [fork = ForkGuard()](T* last) {
    if (!fork.inChild()) delete last;
  });
}

}  // namespace hmc
