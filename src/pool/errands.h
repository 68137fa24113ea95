#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

#include "base/thread.h"

namespace hmc::pool {

// Work that may wait for a peer or the store, each piece in a thread of its own, so that nothing
// else waits with it. Safe from any thread that is not one of them.
class Errands {
 public:
  ~Errands() { finish(); }

  Status run(const char* name, std::function<void()> work) {
    std::list<Errand> ended;  // joined after the lock
    std::lock_guard lock(mutex_);
    for (auto one = all_.begin(); one != all_.end();) {
      const auto next = std::next(one);
      if (one->done) ended.splice(ended.end(), all_, one);
      one = next;
    }
    Errand& errand = all_.emplace_back();
    auto thread = startThread(name, [&errand, job = std::move(work)](const std::stop_token&) {
      job();
      errand.done = true;
    });
    if (!thread.ok()) {
      all_.pop_back();
      return thread.status();
    }
    errand.thread = *std::move(thread);
    return Status();
  }
  // Waits for all of them.
  void finish() {
    std::list<Errand> all;  // joined after the lock
    std::lock_guard lock(mutex_);
    all.swap(all_);
  }

 private:
  struct Errand {
    std::atomic<bool> done{false};
    std::jthread thread;
  };
  std::mutex mutex_;
  std::list<Errand> all_;  // guarded by mutex_; those that ended go when the next one starts
};

}  // namespace hmc::pool
