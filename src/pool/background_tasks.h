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
class BackgroundTasks {
 public:
  ~BackgroundTasks() { finish(); }

  Status run(const char* name, std::function<void()> work) {
    std::list<Task> ended;  // joined after the lock
    std::lock_guard lock(mutex_);
    for (auto one = all_.begin(); one != all_.end();) {
      const auto next = std::next(one);
      if (one->done) ended.splice(ended.end(), all_, one);
      one = next;
    }
    Task& task = all_.emplace_back();
    auto thread = startThread(name, [&task, job = std::move(work)](const std::stop_token&) {
      job();
      task.done = true;
    });
    if (!thread.ok()) {
      all_.pop_back();
      return thread.status();
    }
    task.thread = *std::move(thread);
    return Status();
  }
  // Waits for all of them.
  void finish() {
    std::list<Task> all;  // joined after the lock
    std::lock_guard lock(mutex_);
    all.swap(all_);
  }

 private:
  struct Task {
    std::atomic<bool> done{false};
    std::jthread thread;
  };
  std::mutex mutex_;
  std::list<Task> all_;  // guarded by mutex_; those that ended go when the next one starts
};

}  // namespace hmc::pool
