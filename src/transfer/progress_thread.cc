#include "transfer/progress_thread.h"

#include <system_error>

#include "base/error.h"
#include "base/thread.h"

namespace hmc {

namespace {
// Transfers of one link that are posted before the others get their turn.
constexpr int kTransfersPerTurn = 64;
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
    HMC_TRY(startThread());
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

Status ProgressThread::startThread() {
  if (thread_.joinable()) return Status();
  try {
    thread_ = namedThread("hmc-progress", [this](const std::stop_token& stop) { run(stop); });
    return Status();
  } catch (const std::system_error& e) {
    return errnoStatus("start the thread that moves watched transfers", e.code().value());
  }
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
    const bool more = moveAll(lock);
    lock.unlock();
    poller_.round(seen, more ? Deadline::now() : Deadline::never());
    lock.lock();
  }
}

bool ProgressThread::moveAll(Lock& lock) {
  bool more = false;
  // Others only add to it meanwhile.
  for (auto link = unposted_.begin(); link != unposted_.end();) {
    more = moveQueue(lock, link->second) || more;
    link = link->second.empty() ? unposted_.erase(link) : std::next(link);
  }
  moveStaged(lock);
  return more;
}

bool ProgressThread::moveQueue(Lock& lock, Queue& queue) {
  for (int left = kTransfersPerTurn; left > 0 && !queue.empty(); --left) {
    const PostResult result = post(lock, queue.front());
    if (result != PostResult::allPosted) return result == PostResult::outOfTime;
    queue.pop_front();
  }
  return !queue.empty();
}

void ProgressThread::moveStaged(Lock& lock) {
  bool noFarSlot = false;
  for (size_t i = 0; i < staged_.size();) {
    const PostResult result = post(lock, staged_[i]);
    noFarSlot = noFarSlot || result == PostResult::noFarSlot;
    if (result == PostResult::allPosted) {
      staged_[i] = staged_.back();
      staged_.pop_back();
    } else {
      ++i;
    }
  }
  if (!noFarSlot) return;
  lock.unlock();
  poster_.moveSlotHolders();
  lock.lock();
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
