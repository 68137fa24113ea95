#include "transport/ipc/shared.h"

namespace hmc::ipc {

void Shared::add(std::shared_ptr<Outgoing> ring) {
  std::lock_guard lock(mutex_);
  rings_.push_back(std::move(ring));
  count_.store(rings_.size(), std::memory_order_release);
}

void Shared::remove(const Outgoing* ring) {
  std::lock_guard lock(mutex_);
  std::erase_if(rings_, [&](const auto& each) { return each.get() == ring; });
  count_.store(rings_.size(), std::memory_order_release);
}

bool Shared::pump() {
  bool finished = deviceCopies.poll();
  std::lock_guard lock(mutex_);
  for (const auto& ring : rings_) finished = ring->pump() || finished;
  return finished;
}

}  // namespace hmc::ipc
