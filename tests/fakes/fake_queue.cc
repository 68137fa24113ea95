#include "fakes/fake_queue.h"

#include <algorithm>
#include <cstring>

#include "base/thread.h"

namespace hmc {

FakeQueue::FakeQueue(const char* threadName, std::chrono::milliseconds delay)
    : delay_(delay),
      thread_(namedThread(threadName, [this](std::stop_token stop) { run(stop); })) {}

void FakeQueue::push(const Copy& copy) {
  std::lock_guard lock(mutex_);
  entries_.push_back({copy, Clock::now() + delay_});
  ++pushed_;
  changed_.notify_all();
}

void FakeQueue::drain() {
  std::unique_lock lock(mutex_);
  uint64_t last = pushed_;
  wanted_ = std::max(wanted_, last);
  changed_.notify_all();
  changed_.wait(lock, [&] { return done_ >= last; });
}

uint64_t FakeQueue::done() {
  std::lock_guard lock(mutex_);
  return done_;
}

bool FakeQueue::waitForWork(std::unique_lock<std::mutex>& lock, const std::stop_token& stop) {
  changed_.wait(lock, stop, [&] { return !entries_.empty(); });
  while (!stop.stop_requested() && done_ >= wanted_ && Clock::now() < entries_.front().due) {
    auto due = entries_.front().due;
    changed_.wait_until(lock, stop, due, [&] { return done_ < wanted_; });
  }
  return !stop.stop_requested();
}

void FakeQueue::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (waitForWork(lock, stop)) {
    Copy copy = entries_.front().copy;
    entries_.pop_front();
    lock.unlock();
    std::memmove(copy.dst, copy.src, copy.size);
    lock.lock();
    ++done_;
    changed_.notify_all();
  }
}

}  // namespace hmc
