#pragma once

#include <sys/eventfd.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

#include "base/error.h"
#include "base/fd.h"
#include "hmc/deadline.h"
#include "hmc/result.h"

namespace hmc {

// What happened, for whoever asks next, with a descriptor for event loops. Safe from any thread.
template <class T>
class EventQueue {
 public:
  void push(T item) {
    std::lock_guard lock(mutex_);
    items_.push_back(std::move(item));
    changed_.notify_all();
    signalLocked();
  }
  // Drops those that `unwanted` is true for; answers whether there was one.
  template <class Test>
  bool erase(const Test& unwanted) {
    std::lock_guard lock(mutex_);
    const bool some = std::erase_if(items_, unwanted) > 0;
    signalLocked();
    return some;
  }
  // Shows all to `see`, the oldest first.
  template <class See>
  void look(const See& see) {
    std::lock_guard lock(mutex_);
    for (const T& item : items_) see(item);
  }
  // The oldest, waiting for one. Nothing when the time is over, or the queue empty and closed.
  std::optional<T> pop(Deadline deadline) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, deadline.at(), [&] { return !items_.empty() || closed_; });
    if (items_.empty()) return std::nullopt;
    std::optional<T> first(std::move(items_.front()));
    items_.pop_front();
    signalLocked();
    return first;
  }
  // Readable while pop() returns at once; made when it is first asked for.
  Result<int> fd() {
    std::lock_guard lock(mutex_);
    if (!event_) {
      Fd made(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
      if (!made) return errnoStatus("making an eventfd for a queue of events");
      event_ = std::move(made);
      signalLocked();
    }
    return event_.get();
  }
  // After close().
  void open() {
    std::lock_guard lock(mutex_);
    closed_ = false;
    signalLocked();
  }
  // What is queued stays.
  void close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
    signalLocked();
  }

 private:
  void signalLocked() {
    const bool readable = !items_.empty() || closed_;
    if (!event_ || readable == signalled_) return;
    signalled_ = readable;
    eventfd_t ignored;
    readable ? eventfd_write(event_.get(), 1) : eventfd_read(event_.get(), &ignored);
  }

  std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  std::deque<T> items_;
  Fd event_;                // none until somebody asks for it
  bool signalled_ = false;  // it is readable
  bool closed_ = false;
};

}  // namespace hmc
