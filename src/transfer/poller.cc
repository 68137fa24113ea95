#include "transfer/poller.h"

namespace hmc {

namespace {
// How long one round lasts at most; a bound on the harm of a wake-up that a transport missed.
constexpr std::chrono::milliseconds kRound{100};
}  // namespace

void Poller::round(const Completion* completion, uint64_t seen, Deadline deadline) {
  std::unique_lock lock(mutex_);
  if (completion && completion->done()) return;
  const Deadline until = kicks_ == seen ? earlier(deadline, Deadline(kRound)) : Deadline::now();
  if (polling_) {
    ++sleepers_;
    const uint64_t before = rounds_;
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
  ++kicks_;
  ++rounds_;
  changed_.notify_all();
  if (polling_) transport_.wake();
}

}  // namespace hmc
