#include "fakes/fake_queue.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "base/thread.h"

namespace hmc {

namespace {

// Pages of shared memory are given back, so that large allocations take no memory until they are
// used.
void fillWithZeros(char* bytes, size_t size) {
  constexpr size_t kPage = 4096;
  auto at = reinterpret_cast<uintptr_t>(bytes);
  const size_t head = std::min(size, (kPage - at % kPage) % kPage);
  const size_t pages = (size - head) / kPage * kPage;
  std::memset(bytes, 0, head);
  if (pages > 0 && madvise(bytes + head, pages, MADV_REMOVE) != 0) {
    std::memset(bytes + head, 0, pages);
  }
  std::memset(bytes + head + pages, 0, size - head - pages);
}

}  // namespace

void FakePoint::pass() {
  std::lock_guard lock(mutex_);
  passed_.store(true, std::memory_order_release);
  changed_.notify_all();
}

void FakePoint::hasten() {
  FakeQueue* queue = nullptr;
  uint64_t number = 0;
  {
    std::lock_guard lock(mutex_);
    queue = queue_;
    number = number_;
  }
  if (queue) queue->want(number);
}

bool FakePoint::wait(const std::stop_token& stop) {
  hasten();
  std::unique_lock lock(mutex_);
  return changed_.wait(lock, stop, [&] { return passed_.load(); });
}

FakeQueue::FakeQueue(const char* threadName, std::chrono::milliseconds delay, Works works)
    : delay_(delay),
      works_(std::move(works)),
      thread_(namedThread(threadName, [this](std::stop_token stop) { run(stop); })) {}

uint64_t FakeQueue::add(Entry entry) {
  std::lock_guard lock(mutex_);
  entry.due = Clock::now() + delay_;
  entries_.push_back(std::move(entry));
  changed_.notify_all();
  return ++pushed_;
}

void FakeQueue::push(std::vector<Copy> copies) {
  add({std::move(copies), {}});
}

void FakeQueue::push(const std::shared_ptr<FakePoint>& point) {
  const uint64_t number = add({point, {}});
  std::lock_guard lock(point->mutex_);
  point->queue_ = this;
  point->number_ = number;
}

void FakeQueue::hold(std::shared_ptr<FakePoint> point) {
  add({Hold{std::move(point)}, {}});
}

void FakeQueue::want(uint64_t number) {
  std::lock_guard lock(mutex_);
  if (number <= wanted_) return;
  wanted_ = number;
  changed_.notify_all();
}

void FakeQueue::stall(bool stalled) {
  std::lock_guard lock(mutex_);
  stalled_ = stalled;
  changed_.notify_all();
}

bool FakeQueue::drain(Deadline deadline) {
  std::unique_lock lock(mutex_);
  const uint64_t last = pushed_;
  wanted_ = std::max(wanted_, last);
  changed_.notify_all();
  return changed_.wait_until(lock, deadline.at(), [&] { return done_ >= last; });
}

uint64_t FakeQueue::done() {
  std::lock_guard lock(mutex_);
  return done_;
}

uint64_t FakeQueue::left() {
  std::lock_guard lock(mutex_);
  return pushed_ - done_;
}

void FakeQueue::stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

bool FakeQueue::waitForWork(std::unique_lock<std::mutex>& lock, const std::stop_token& stop) {
  changed_.wait(lock, stop, [&] { return !entries_.empty() && !stalled_; });
  while (!stop.stop_requested() && (stalled_ || done_ >= wanted_) &&
         (stalled_ || Clock::now() < entries_.front().due)) {
    auto due = stalled_ ? Clock::now() + std::chrono::hours(1) : entries_.front().due;
    changed_.wait_until(lock, stop, due, [&] { return !stalled_ && done_ < wanted_; });
  }
  return !stop.stop_requested();
}

// False when the thread shall end.
bool FakeQueue::runEntry(Entry& entry, const std::stop_token& stop) {
  if (auto* copies = std::get_if<std::vector<Copy>>(&entry.work)) {
    for (const Copy& copy : *copies) {
      if (!works_()) continue;
      if (copy.src) {
        std::memmove(copy.dst, copy.src, copy.size);
      } else {
        fillWithZeros(copy.dst, copy.size);
      }
    }
  } else if (auto* hold = std::get_if<Hold>(&entry.work)) {
    return hold->point->wait(stop);
  } else if (works_()) {
    std::get<std::shared_ptr<FakePoint>>(entry.work)->pass();
  }
  return true;
}

void FakeQueue::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (waitForWork(lock, stop)) {
    Entry entry = std::move(entries_.front());
    entries_.pop_front();
    lock.unlock();
    if (!runEntry(entry, stop)) return;
    lock.lock();
    ++done_;
    changed_.notify_all();
  }
}

}  // namespace hmc
