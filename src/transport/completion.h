#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "hmc/status.h"

namespace hmc {

class Completion;

// Told when the last operation of a Completion has ended, by whoever ended it, with a transport's
// locks held perhaps: it must not call back. The Completion may be gone by then.
class CompletionObserver {
 public:
  virtual ~CompletionObserver() = default;
  virtual void onComplete(const Completion* completion) = 0;
};

// Counts down the operations that share it and keeps the first error. Lives where the caller
// likes, on the stack for a blocking call, and must outlive the operations: a Link touches it last
// in finish() or fail(), which are called exactly once for every operation that post() accepted.
class Completion {
 public:
  explicit Completion(uint32_t operations, CompletionObserver* observer = nullptr)
      : pending_(operations), observer_(observer) {}

  // `operations` of them went well. Whoever sees done() sees their bytes.
  void finish(uint32_t operations = 1) {
    CompletionObserver* const observer = observer_;  // once it is over, this may be gone
    // Who holds all that is pending is alone with it, and a plain store does not wait for the
    // copy's own stores to leave the core, as a locked instruction would.
    if (pending_.load(std::memory_order_acquire) == operations) {
      pending_.store(0, std::memory_order_release);
    } else if (pending_.fetch_sub(operations, std::memory_order_release) != operations) {
      return;
    }
    if (observer) observer->onComplete(this);
  }
  void fail(const Status& status, uint32_t operations = 1);

  bool done() const { return pending_.load(std::memory_order_acquire) == 0; }
  uint32_t pending() const { return pending_.load(std::memory_order_acquire); }
  // An operation has failed; others may still be on their way.
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // The first error so far.
  Status status() const;

  // More operations join, or joined ones were never posted. Only while the caller knows that it
  // cannot reach zero under it.
  void expect(uint32_t operations) { pending_.fetch_add(operations, std::memory_order_relaxed); }

 private:
  std::atomic<uint32_t> pending_;
  std::atomic<bool> failed_{false};
  CompletionObserver* const observer_;
  mutable std::mutex mutex_;
  Status error_;  // guarded by mutex_
};

}  // namespace hmc
