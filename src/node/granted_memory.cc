#include "node/granted_memory.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "base/error.h"
#include "base/log.h"
#include "base/thread.h"
#include "node/peer_state.h"

namespace hmc {

namespace {

// Not every clock can wait until the end of time.
constexpr std::chrono::hours kLookEvery{1};

Deadline::Clock::time_point expiryOf(const GrantToken& grant) {
  const int64_t end = grant.allowed().expires;
  if (end == 0) return Deadline::Clock::time_point::max();
  return Deadline(std::chrono::nanoseconds(end - wallClock())).at();
}

}  // namespace

std::pair<GrantedMemory::Opens::iterator, GrantedMemory::Opens::iterator> GrantedMemory::ofLocked(
    const PeerState& peer) {
  return {opens_.lower_bound({&peer, 0}),
          opens_.upper_bound({&peer, std::numeric_limits<uint64_t>::max()})};
}

Result<GrantedMemory::Memory> GrantedMemory::open(const PeerState& peer, uint64_t opening,
                                                  const Memory& region, const GrantToken& grant,
                                                  const std::function<Memory()>& make) {
  std::lock_guard lock(mutex_);
  const auto [first, last] = ofLocked(peer);
  size_t count = 0;
  for (auto one = first; one != last; ++one) {
    if (one->second.closed) continue;
    if (one->second.opening == opening) return one->second.memory;
    ++count;
  }
  // Under the lock: what is taken back after this sees the part.
  if (region->revoked() || ended_.count(grant.id) > 0) {
    return error(Code::permissionDenied, "the grant for region \"{}\" was revoked by its owner",
                 region->name());
  }
  if (count >= kMost || static_cast<size_t>(std::distance(first, last)) >= 2 * kMost) {
    return error(
        Code::exhausted,
        "{} has {} regions open by grants, which is the most: close one that is not needed",
        peer.title(), count);
  }
  HMC_TRY(startLocked());
  Memory made = make();
  const Key key{&peer, made->number()};
  Open& open = opens_[key];
  open = {made, opening, region->number(), grant.id, expiryOf(grant), false, {}};
  schedule_.emplace(open.at, key);
  news_.notify_all();
  return made;
}

Status GrantedMemory::startLocked() {
  if (thread_.joinable()) return Status();
  HMC_ASSIGN(thread_,
             startThread("hmc-grants", [this](const std::stop_token& stop) { run(stop); }));
  return Status();
}

GrantedMemory::Memory GrantedMemory::find(const PeerState& peer, uint64_t number) const {
  std::lock_guard lock(mutex_);
  const auto found = opens_.find({&peer, number});
  return found == opens_.end() || found->second.closed ? nullptr : found->second.memory;
}

void GrantedMemory::lookAtLocked(const Key& key, Open& open, Time when) {
  schedule_.erase({open.at, key});
  open.at = when;
  schedule_.emplace(when, key);
  news_.notify_all();
}

void GrantedMemory::lookNow(const Key& key) {
  std::lock_guard lock(mutex_);
  const auto found = opens_.find(key);
  if (found != opens_.end()) lookAtLocked(key, found->second, Deadline::now().at());
}

// The memory hears of it first, or the thread would still ask the peer.
void GrantedMemory::closed(const PeerState& peer, uint64_t opening) {
  std::optional<Key> key;
  Memory memory;
  {
    std::lock_guard lock(mutex_);
    const auto [first, last] = ofLocked(peer);
    const auto found = std::find_if(first, last, [&](const auto& one) {
      return one.second.opening == opening && !one.second.closed;
    });
    if (found == last) return;
    key = found->first;
    memory = found->second.memory;
    found->second.closed = true;
  }
  memory->closedBy(peer);
  lookNow(*key);
}

// Without the lock: the memory tells us that it is free.
void GrantedMemory::released(const PeerState& peer, uint64_t number) {
  if (auto memory = find(peer, number)) memory->released(peer);
}

void GrantedMemory::left(const PeerState& peer) {
  std::vector<Memory> parts;
  {
    std::lock_guard lock(mutex_);
    const auto [first, last] = ofLocked(peer);
    for (auto one = first; one != last; ++one) {
      parts.push_back(one->second.memory);
      one->second.closed = true;
      lookAtLocked(one->first, one->second, Deadline::now().at());
    }
  }
  for (const auto& part : parts) part->left(peer);
}

std::vector<GrantedMemory::Memory> GrantedMemory::beginRevoke(
    const std::function<bool(const Open&)>& which) {
  std::vector<Memory> parts;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [key, open] : opens_) {
      if (which(open)) parts.push_back(open.memory);
    }
  }
  for (const auto& part : parts) part->begin();
  return parts;
}

std::vector<GrantedMemory::Memory> GrantedMemory::beginRevoke(const std::string& grantId) {
  {
    std::lock_guard lock(mutex_);
    ended_.insert(grantId);
  }
  return beginRevoke([&](const Open& open) { return open.grant == grantId; });
}

std::vector<GrantedMemory::Memory> GrantedMemory::beginRevoke(const ExportedMemory& region) {
  return beginRevoke([&](const Open& open) { return open.region == region.number(); });
}

Status GrantedMemory::endRevoke(const std::vector<Memory>& parts, Deadline deadline,
                                std::chrono::nanoseconds timeout) {
  Status first;
  for (const auto& part : parts) {
    Status status = part->end(deadline, timeout);
    if (first.ok()) first = std::move(status);
  }
  std::lock_guard lock(mutex_);
  for (auto one = opens_.begin(); one != opens_.end();) {
    const bool over = std::find(parts.begin(), parts.end(), one->second.memory) != parts.end();
    if (over) schedule_.erase({one->second.at, one->first});
    one = over ? opens_.erase(one) : std::next(one);
  }
  return first;
}

void GrantedMemory::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    const Time now = Deadline::now().at();
    const Time next = schedule_.empty() ? Time::max() : schedule_.begin()->first;
    if (next > now) {
      const auto earlier = [&] { return !schedule_.empty() && schedule_.begin()->first < next; };
      news_.wait_until(lock, stop, std::min<Time>(next, now + kLookEvery), earlier);
      continue;
    }
    const Key key = schedule_.begin()->second;
    advance(key, lock);
  }
}

// One step of taking it back: asks the peer to let go, and then, once it has or its time is over,
// ends it. Nothing here waits for a peer, so that none holds up what was granted to others.
void GrantedMemory::advance(const Key& key, std::unique_lock<std::mutex>& lock) {
  Open& open = opens_.at(key);
  const Memory memory = open.memory;
  const bool asks = !open.limit;
  if (asks) open.limit = Deadline(patience_);
  const Deadline limit = *open.limit;
  lookAtLocked(key, open, limit.at());
  lock.unlock();
  if (asks) memory->begin([this, key] { lookNow(key); });
  const bool ends = memory->isFree() || limit.passed();
  if (ends) {
    const Status ended = memory->end(Deadline::now(), patience_);
    if (!ended.ok()) logWarn("{}", ended.message());
  }
  lock.lock();
  const auto found = ends ? opens_.find(key) : opens_.end();
  if (found == opens_.end()) return;
  schedule_.erase({found->second.at, key});
  opens_.erase(found);
}

}  // namespace hmc
