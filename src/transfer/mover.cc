#include "transfer/mover.h"

#include <system_error>

#include "base/error.h"
#include "base/thread.h"
#include "transfer/engine.h"

namespace hmc {

namespace {
// Transfers of one link that are posted before the others get their turn.
constexpr int kTransfersPerTurn = 64;
}  // namespace

void Mover::stop() {
  thread_.request_stop();
  nudge();
  if (thread_.joinable()) thread_.join();
}

Status Mover::watch(TransferState& transfer, ArrivalList& list, ArrivalList::Entry entry) {
  const Completion* const key = &transfer.completion_;
  bool unposted = false;
  {
    Lock lock(mutex_);
    if (transfer.done()) {
      list.arrived(entry);
      return Status();
    }
    HMC_TRY(startThread());
    watched_.emplace(key, Watch{&transfer, &list, entry});
    setWatching();
    unposted = !Engine::posted(transfer);
    if (unposted && transfer.direct()) {
      unposted_[transfer.route_.link].push_back(key);
    } else if (unposted) {
      staged_.push_back(key);
    }
    wanted_.notify_one();
  }
  if (unposted) nudge();
  return Status();
}

Status Mover::startThread() {
  if (thread_.joinable()) return Status();
  try {
    thread_ = namedThread("hmc-mover", [this](const std::stop_token& stop) { run(stop); });
    return Status();
  } catch (const std::system_error& e) {
    return errnoStatus("start the thread that moves watched transfers", e.code().value());
  }
}

void Mover::forget(const ArrivalList& list) {
  Lock lock(mutex_);
  std::erase_if(watched_, [&](const auto& one) { return one.second.list == &list; });
  setWatching();
  if (moving_) moved_.wait(lock, [this, before = moves_] { return moves_ != before; });
}

void Mover::nudge() {
  news_ = true;
  engine_.poller_.kick();
}

void Mover::over(const Completion* completion) {
  std::lock_guard lock(mutex_);
  if (moving_ && (!movingWhat_ || movingWhat_ == completion)) {
    overMeanwhile_.push_back(completion);
  } else {
    tellIfDone(completion);
  }
}

void Mover::tellIfDone(const Completion* completion) {
  const auto [first, last] = watched_.equal_range(completion);
  // Another transfer may lie where the one lay that this is the end of.
  if (first == last || !first->second.transfer->done()) return;
  for (auto one = first; one != last; ++one) one->second.list->arrived(one->second.entry);
  watched_.erase(first, last);
  setWatching();
}

TransferState* Mover::find(const Completion* completion) {
  const auto found = watched_.find(completion);
  return found == watched_.end() ? nullptr : found->second.transfer;
}

void Mover::run(const std::stop_token& stop) {
  Lock lock(mutex_);
  while (wanted_.wait(lock, stop, [this] { return !watched_.empty(); })) {
    news_ = false;
    const bool more = moveAll(lock);
    lock.unlock();
    engine_.poller_.round(news_, more ? Deadline::now() : Deadline::never());
    lock.lock();
    if (stop.stop_requested()) return;
  }
}

bool Mover::moveAll(Lock& lock) {
  bool more = false;
  // Others only add to it meanwhile.
  for (auto link = unposted_.begin(); link != unposted_.end();) {
    more = moveQueue(lock, link->second) || more;
    link = link->second.empty() ? unposted_.erase(link) : std::next(link);
  }
  moveStaged(lock);
  return more;
}

bool Mover::moveQueue(Lock& lock, Queue& queue) {
  for (int left = kTransfersPerTurn; left > 0 && !queue.empty(); --left) {
    const Completion* const key = queue.front();
    const auto posting = post(lock, key);
    if (posting != Posting::over) return posting == Posting::paused;
    queue.pop_front();
  }
  return !queue.empty();
}

void Mover::moveStaged(Lock& lock) {
  bool starved = false;
  for (size_t i = 0; i < staged_.size();) {
    const auto posting = post(lock, staged_[i]);
    starved = starved || posting == Posting::starved;
    if (posting == Posting::over) {
      staged_[i] = staged_.back();
      staged_.pop_back();
    } else {
      ++i;
    }
  }
  if (!starved) return;
  // A transfer that nobody waits for may have all slots.
  beginMove(lock, nullptr);
  engine_.moveHolders();
  endMove(lock);
}

Posting Mover::post(Lock& lock, const Completion* completion) {
  TransferState* const transfer = find(completion);
  if (!transfer) return Posting::over;
  beginMove(lock, completion);
  const Posting posting = engine_.tryPump(*transfer);
  endMove(lock);
  return posting;
}

void Mover::beginMove(Lock& lock, const Completion* what) {
  moving_ = true;
  movingWhat_ = what;
  lock.unlock();
}

void Mover::endMove(Lock& lock) {
  lock.lock();
  moving_ = false;
  ++moves_;
  moved_.notify_all();
  for (const Completion* one : overMeanwhile_) tellIfDone(one);
  overMeanwhile_.clear();
}

}  // namespace hmc
