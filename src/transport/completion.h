#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "hmc/status.h"

namespace hmc {

// Hears that the last operation of a Completion has ended, and the code of the first error. Called
// by whoever ended it, possibly with a transport's locks held: it must not call a transport. The
// Completion may be gone by then, so its id says which one it was.
class CompletionObserver {
 public:
  virtual ~CompletionObserver() = default;
  virtual void onComplete(uint64_t id, Code code) = 0;
};

// Counts down the operations that share it and keeps the first error. Lives where the caller
// likes, on the stack for a blocking call, and must outlive the operations: a Link touches it last
// in finish() or fail(), which are called exactly once for every operation that post() accepted.
class Completion {
 public:
  // `id` is for the observer alone: whoever sets one never uses the same id twice.
  explicit Completion(uint32_t operations, CompletionObserver* observer = nullptr, uint64_t id = 0)
      : state_(operations), observer_(observer), id_(id) {}

  // `operations` of them went well. Whoever sees done() sees their bytes.
  void finish(uint32_t operations = 1) {
    // Once the count is zero, this object may be gone.
    CompletionObserver* const observer = observer_;
    const uint64_t id = id_;
    uint64_t before = state_.load(std::memory_order_acquire);
    if (count(before) == operations) {
      // We hold every count, so a plain store is safe. It does not wait for the copy's own stores
      // to leave the core, as a locked instruction would.
      state_.store(before - operations, std::memory_order_release);
    } else {
      before = state_.fetch_sub(operations, std::memory_order_release);
      if (count(before) != operations) return;
    }
    if (observer) observer->onComplete(id, code(before));
  }
  void fail(const Status& status, uint32_t operations = 1) {
    CompletionObserver* const observer = observer_;
    const uint64_t id = id_;
    {
      std::lock_guard lock(mutex_);
      if (error_.ok()) {
        error_ = status;
        state_.fetch_or(static_cast<uint64_t>(status.code()) << 32, std::memory_order_release);
      }
    }
    const uint64_t before = state_.fetch_sub(operations, std::memory_order_release);
    if (count(before) == operations && observer) observer->onComplete(id, code(before));
  }
  // finish() or fail().
  void end(const Status& status) { status.ok() ? finish() : fail(status); }

  bool done() const { return pending() == 0; }
  uint32_t pending() const { return count(state_.load(std::memory_order_acquire)); }
  // An operation has failed; others may still be on their way.
  bool failed() const { return code(state_.load(std::memory_order_acquire)) != Code::ok; }
  // The first error so far.
  Status status() const {
    if (!failed()) return Status();
    std::lock_guard lock(mutex_);
    return error_;
  }

  // More operations join, or joined ones were never posted. Only while the caller knows that it
  // cannot reach zero under it.
  void expect(uint32_t operations) { state_.fetch_add(operations, std::memory_order_relaxed); }

 private:
  static uint32_t count(uint64_t state) { return static_cast<uint32_t>(state); }
  static Code code(uint64_t state) { return static_cast<Code>(state >> 32); }

  // The count of pending operations below, the code of the first error above: the one who takes the
  // count to zero knows both.
  std::atomic<uint64_t> state_;
  CompletionObserver* const observer_;
  const uint64_t id_;
  mutable std::mutex mutex_;
  Status error_;  // guarded by mutex_
};

}  // namespace hmc
