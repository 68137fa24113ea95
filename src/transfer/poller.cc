#include "transfer/poller.h"

namespace hmc {

namespace {
// How long one round lasts at most; a bound on the harm of a wake-up that a transport missed.
constexpr std::chrono::milliseconds kRound{100};
}  // namespace

void Poller::round(const Completion& completion, Deadline deadline) {
  Deadline until = earlier(deadline, Deadline(kRound));
  std::unique_lock lock(mutex_);
  if (completion.done()) return;
  if (polling_) {
    ++sleepers_;
    uint64_t before = rounds_;
    changed_.wait_until(lock, until.at(), [&] { return rounds_ != before || !polling_; });
    --sleepers_;
    return;
  }
  polling_ = true;
  lock.unlock();
  transport_.progress(until);
  lock.lock();
  polling_ = false;
  ++rounds_;
  if (sleepers_ > 0) changed_.notify_all();
}

void Poller::kick() {
  std::lock_guard lock(mutex_);
  ++rounds_;
  changed_.notify_all();
}

}  // namespace hmc
