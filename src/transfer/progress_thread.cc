#include "transfer/progress_thread.h"

#include <algorithm>

#include "base/thread.h"

namespace hmc {

namespace {
// Transfers of one link that are posted before the others get their turn.
constexpr size_t kTransfersPerTurn = 64;
}  // namespace

void ProgressThread::stop() {
  thread_.request_stop();
  poller_.kick();
  if (thread_.joinable()) thread_.join();
}

Status ProgressThread::watch(Transfer& transfer, CompletionObserver& observer) {
  bool wake = false;
  {
    Lock lock(mutex_);
    if (transfer.done()) {
      observer.onComplete(transfer.id, transfer.completion.status().code());
      return Status();
    }
    if (!thread_.joinable()) {
      HMC_ASSIGN(thread_,
                 startThread("hmc-progress", [this](const std::stop_token& stop) { run(stop); }));
    }
    watched_.emplace(transfer.id, Watch{&transfer, &observer});
    if (!Poster::allPosted(transfer)) wake = enqueue(transfer);
    wanted_.notify_one();
  }
  if (wake) poller_.kick();
  return Status();
}

bool ProgressThread::enqueue(const Transfer& transfer) {
  if (!transfer.direct()) {
    staged_.push_back(transfer.id);
    return true;
  }
  // Behind others it has to wait as they do, for the link.
  Queue& queue = unposted_[transfer.route.link];
  queue.push_back(transfer.id);
  return queue.size() == 1;
}

void ProgressThread::forget(uint64_t id, const CompletionObserver& observer) {
  Lock lock(mutex_);
  const auto [first, last] = watched_.equal_range(id);
  for (auto one = first; one != last; ++one) {
    if (one->second.observer != &observer) continue;
    watched_.erase(one);
    break;
  }
  if (posting_ == id) moved_.wait(lock, [this, before = posts_] { return posts_ != before; });
}

void ProgressThread::onComplete(uint64_t id, Code code) {
  std::lock_guard lock(mutex_);
  if (posting_ == id) {
    endedMeanwhile_ = code;
  } else {
    tell(id, code);
  }
}

void ProgressThread::tell(uint64_t id, Code code) {
  const auto [first, last] = watched_.equal_range(id);
  for (auto one = first; one != last; ++one) one->second.observer->onComplete(id, code);
  watched_.erase(first, last);
}

void ProgressThread::run(const std::stop_token& stop) {
  Lock lock(mutex_);
  while (wanted_.wait(lock, stop, [this] { return !watched_.empty(); })) {
    const uint64_t seen = poller_.kicks();
    if (stop.stop_requested()) return;
    const Deadline until = moveAll(lock);
    lock.unlock();
    poller_.round(nullptr, seen, until);
    lock.lock();
  }
}

Deadline ProgressThread::moveAll(Lock& lock) {
  Deadline until = Deadline::never();
  // Others only add to it meanwhile.
  for (auto link = unposted_.begin(); link != unposted_.end();) {
    until = earlier(until, moveQueue(lock, link->second));
    link = link->second.empty() ? unposted_.erase(link) : std::next(link);
  }
  return earlier(until, moveStaged(lock));
}

Deadline ProgressThread::moveQueue(Lock& lock, Queue& queue) {
  bool onDevice = false;
  for (size_t left = std::min(kTransfersPerTurn, queue.size()); left > 0; --left) {
    const PostResult result = post(lock, queue.front());
    if (result == PostResult::outOfTime) return Deadline::now();
    if (result == PostResult::underWay) return onDevice ? Deadline(kDevicePoll) : Deadline::never();
    if (result == PostResult::onDevice) {
      onDevice = true;
      queue.push_back(queue.front());  // the link is free for those behind it
    }
    queue.pop_front();
  }
  if (queue.empty()) return Deadline::never();
  return onDevice ? Deadline(kDevicePoll) : Deadline::now();
}

Deadline ProgressThread::moveStaged(Lock& lock) {
  bool noFarSlot = false;
  bool onDevice = false;
  for (size_t i = 0; i < staged_.size();) {
    const PostResult result = post(lock, staged_[i]);
    noFarSlot = noFarSlot || result == PostResult::noFarSlot;
    onDevice = onDevice || result == PostResult::onDevice;
    if (result == PostResult::allPosted) {
      staged_[i] = staged_.back();
      staged_.pop_back();
    } else {
      ++i;
    }
  }
  if (noFarSlot) {
    lock.unlock();
    onDevice = poster_.moveSlotHolders() || onDevice;
    lock.lock();
  }
  return onDevice ? Deadline(kDevicePoll) : Deadline::never();
}

PostResult ProgressThread::post(Lock& lock, uint64_t id) {
  const auto found = watched_.find(id);
  if (found == watched_.end()) return PostResult::allPosted;
  Transfer& transfer = *found->second.transfer;
  posting_ = id;
  lock.unlock();
  const PostResult result = poster_.tryPost(transfer);
  lock.lock();
  posting_.reset();
  ++posts_;
  moved_.notify_all();
  if (endedMeanwhile_) tell(id, *endedMeanwhile_);
  endedMeanwhile_.reset();
  return result;
}

}  // namespace hmc
