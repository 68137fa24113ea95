#include "store/watched_keys.h"

#include <iterator>
#include <utility>

#include "base/error.h"

namespace hmc::store {

namespace {

// With so much unread, the server keeps the rest.
constexpr size_t kMostQueued = size_t{1} << 16;
constexpr size_t kMostQueuedBytes = size_t{32} << 20;

size_t sizeOf(const Change& change) {
  return change.entry.key.size() + change.entry.value.size();
}

}  // namespace

Result<std::vector<Change>> WatchedKeys::next(Deadline deadline, bool& resume) {
  std::unique_lock lock(mutex_);
  while (queue_.empty()) {
    if (!failed_.ok()) return failed_;
    if (deadline.passed()) {
      return error(Code::deadlineExceeded, "no key that begins with {} changed before the deadline",
                   prefix_);
    }
    changed_.wait_until(lock, deadline.at());
  }
  std::vector<Change> changes(std::make_move_iterator(queue_.begin()),
                              std::make_move_iterator(queue_.end()));
  queue_.clear();
  queuedBytes_ = 0;
  if (failed_.ok()) fd_.clear();
  resume = std::exchange(paused_, false);
  return changes;
}

void WatchedKeys::begin(bool forgotten) {
  std::lock_guard lock(mutex_);
  forgotten_ = forgotten_ || forgotten;
  listed_.emplace();
  paused_ = false;
}

void WatchedKeys::fail(const Status& why) {
  std::lock_guard lock(mutex_);
  failed_ = why;
  fd_.signal();
  changed_.notify_all();
}

bool WatchedKeys::take(std::vector<Change> changes) {
  std::lock_guard lock(mutex_);
  for (Change& change : changes) apply(std::move(change));
  paused_ = queue_.size() > kMostQueued || queuedBytes_ > kMostQueuedBytes;
  return !paused_;
}

void WatchedKeys::apply(Change change) {
  const std::string& key = change.entry.key;
  switch (change.kind) {
    case Change::Kind::current:
      return finishList();
    case Change::Kind::removed:
      if (orphans_.erase(key) + known_.erase(key) == 0) return;
      return push(std::move(change));
    case Change::Kind::set: {
      const bool orphan = orphans_.erase(key) > 0;
      const auto found = known_.find(key);
      // What came back as it was, did not change.
      const bool same = found != known_.end() && found->second == change.entry.value;
      if (listed_) listed_->insert(key);
      if (same && (listed_ || orphan)) return;
      known_[key] = change.entry.value;
      return push(std::move(change));
    }
  }
}

void WatchedKeys::finishList() {
  if (!listed_) return;
  const bool forgotten = std::exchange(forgotten_, false);
  for (auto at = known_.begin(); at != known_.end();) {
    const std::string& key = at->first;
    if (listed_->count(key) > 0) {
      ++at;
    } else if (forgotten || orphans_.count(key) > 0) {
      orphans_.insert((at++)->first);
    } else {
      push({Change::Kind::removed, {key, {}}});
      at = known_.erase(at);
    }
  }
  listed_.reset();
  if (forgotten && !orphans_.empty()) patience_ = grace_;
  if (!std::exchange(current_, true)) push({Change::Kind::current, {}});
}

bool WatchedKeys::hasOrphans() {
  std::lock_guard lock(mutex_);
  return !orphans_.empty();
}

Deadline WatchedKeys::giveUpOrphans() {
  std::lock_guard lock(mutex_);
  if (!patience_) return Deadline::never();
  if (!patience_->passed()) return *patience_;
  for (const std::string& key : std::exchange(orphans_, {})) {
    known_.erase(key);
    push({Change::Kind::removed, {key, {}}});
  }
  patience_.reset();
  return Deadline::never();
}

void WatchedKeys::push(Change change) {
  queuedBytes_ += sizeOf(change);
  queue_.push_back(std::move(change));
  fd_.signal();
  changed_.notify_all();
}

}  // namespace hmc::store
