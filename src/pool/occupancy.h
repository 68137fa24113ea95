#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>

#include "hmc/deadline.h"
#include "node/remote_mapping.h"

namespace hmc::pool {

// Counts the mappings that hold the addresses of slots. Transfers on their way hold theirs, so that
// one may outlive its member. Safe from any thread.
class Occupancy : public std::enable_shared_from_this<Occupancy> {
 public:
  using Mapping = std::shared_ptr<RemoteMapping>;

  // The same mapping, counted until its last handle goes.
  Mapping hold(size_t slot, Mapping mapping) {
    {
      std::lock_guard lock(mutex_);
      ++held_[slot];
    }
    RemoteMapping* const raw = mapping.get();
    return {raw, [self = shared_from_this(), slot, inner = std::move(mapping)](auto*) mutable {
              inner.reset();
              self->letGo(slot);
            }};
  }
  // False when somebody still holds it at the deadline.
  bool awaitFree(size_t slot, Deadline deadline) {
    std::unique_lock lock(mutex_);
    return changed_.wait_until(lock, deadline.at(), [&] { return !held_.contains(slot); });
  }
  bool awaitAll(Deadline deadline) {
    std::unique_lock lock(mutex_);
    return changed_.wait_until(lock, deadline.at(), [&] { return held_.empty(); });
  }

 private:
  void letGo(size_t slot) {
    std::lock_guard lock(mutex_);
    if (--held_[slot] == 0) held_.erase(slot);
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<size_t, size_t> held_;  // guarded by mutex_: how many, by slot
};

}  // namespace hmc::pool
