#include "transfer/progress_thread.h"

#include <system_error>

#include "base/error.h"
#include "base/thread.h"
#include "transfer/engine.h"

namespace hmc {

namespace {
// Transfers of one link that are posted before the others get their turn.
constexpr int kTransfersPerTurn = 64;
}  // namespace

void ProgressThread::stop() {
  thread_.request_stop();
  news_ = true;
  engine_.poller_.kick();
  if (thread_.joinable()) thread_.join();
}

Status ProgressThread::watch(TransferState& transfer, CompletionList& list,
                             CompletionList::Entry entry) {
  const Completion* const key = &transfer.completion_;
  bool news = false;
  {
    Lock lock(mutex_);
    if (transfer.done()) {
      list.arrived(entry);
      return Status();
    }
    HMC_TRY(startThread());
    watched_.emplace(key, Watch{&transfer, &list, entry});
    setWatching();
    if (!Engine::posted(transfer)) news = enqueue(transfer, key);
    wanted_.notify_one();
  }
  if (news) nudge();
  return Status();
}

bool ProgressThread::enqueue(const TransferState& transfer, const Completion* key) {
  if (!transfer.direct()) {
    staged_.push_back(key);
    return true;
  }
  // Behind others it has to wait as they do, for the link.
  Queue& queue = unposted_[transfer.route_.link];
  queue.push_back(key);
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

void ProgressThread::forget(const CompletionList& list) {
  Lock lock(mutex_);
  std::erase_if(watched_, [&](const auto& one) { return one.second.list == &list; });
  setWatching();
  if (moving_) moved_.wait(lock, [this, before = moves_] { return moves_ != before; });
}

void ProgressThread::nudge() {
  // Whoever made older news kicks for both.
  if (!news_.exchange(true)) engine_.poller_.kick();
}

void ProgressThread::onComplete(const Completion* completion) {
  std::lock_guard lock(mutex_);
  if (moving_ && (!movingWhat_ || movingWhat_ == completion)) {
    overMeanwhile_.push_back(completion);
  } else {
    tellIfDone(completion);
  }
}

void ProgressThread::tellIfDone(const Completion* completion) {
  const auto [first, last] = watched_.equal_range(completion);
  // Another transfer may lie where the one lay that this is the end of.
  if (first == last || !first->second.transfer->done()) return;
  for (auto one = first; one != last; ++one) one->second.list->arrived(one->second.entry);
  watched_.erase(first, last);
  setWatching();
}

TransferState* ProgressThread::find(const Completion* completion) {
  const auto found = watched_.find(completion);
  return found == watched_.end() ? nullptr : found->second.transfer;
}

void ProgressThread::run(const std::stop_token& stop) {
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
    const Completion* const key = queue.front();
    const auto posting = post(lock, key);
    if (posting != Posting::over) return posting == Posting::paused;
    queue.pop_front();
  }
  return !queue.empty();
}

void ProgressThread::moveStaged(Lock& lock) {
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

Posting ProgressThread::post(Lock& lock, const Completion* completion) {
  TransferState* const transfer = find(completion);
  if (!transfer) return Posting::over;
  beginMove(lock, completion);
  const Posting posting = engine_.tryPump(*transfer);
  endMove(lock);
  return posting;
}

void ProgressThread::beginMove(Lock& lock, const Completion* what) {
  moving_ = true;
  movingWhat_ = what;
  lock.unlock();
}

void ProgressThread::endMove(Lock& lock) {
  lock.lock();
  moving_ = false;
  ++moves_;
  moved_.notify_all();
  for (const Completion* one : overMeanwhile_) tellIfDone(one);
  overMeanwhile_.clear();
}

}  // namespace hmc
