#pragma once

#include <condition_variable>
#include <mutex>

#include "base/error.h"

namespace hmc::pool {

// Lets one thread at a time do something that may take long. Safe from any thread.
class Turns {
 public:
  // False when another thread has the turn until the deadline.
  bool take(Deadline deadline) {
    std::unique_lock lock(mutex_);
    if (!free_.wait_until(lock, deadline.at(), [this] { return !taken_; })) return false;
    taken_ = true;
    return true;
  }
  void giveBack() {
    std::lock_guard lock(mutex_);
    taken_ = false;
    free_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable free_;
  bool taken_ = false;  // guarded by mutex_
};

// A turn while it lives, unless another thread has it until the deadline.
class Turn {
 public:
  Turn(Turns& turns, Deadline deadline) : turns_(turns), mine_(turns.take(deadline)) {}
  ~Turn() {
    if (mine_) turns_.giveBack();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  bool mine() const { return mine_; }

 private:
  Turns& turns_;
  const bool mine_;
};

}  // namespace hmc::pool
