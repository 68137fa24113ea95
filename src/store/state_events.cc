#include "base/error.h"
#include "store/state.h"

// Leases, awaits and watches.

namespace hmc::store {

Status State::checkLease(uint64_t lease) const {
  if (lease == kNoLease || leases_.count(lease) > 0) return Status();
  return error(Code::notFound, "the store has no lease {:x}: it was not kept alive", lease);
}

Status State::grant(uint64_t lease, std::chrono::milliseconds ttl, Time now) {
  HMC_TRY(checkTtl(ttl));
  if (lease == kNoLease) return error(Code::invalidArgument, "0 cannot be the id of a lease");
  if (leases_.size() >= limits_.leases && leases_.count(lease) == 0) {
    return error(Code::exhausted, "the store has {} leases, and {} is the most", leases_.size(),
                 limits_.leases);
  }
  const auto [found, made] = leases_.try_emplace(lease);
  Granted& granted = found->second;
  if (recorder_ && (made || granted.ttl != ttl)) recorder_->granted(lease, ttl);
  expiries_.erase({granted.expiry, lease});
  granted.ttl = ttl;
  granted.expiry = now + ttl;
  expiries_.emplace(granted.expiry, lease);
  return Status();
}

bool State::keepAlive(uint64_t lease, Time now) {
  const auto found = leases_.find(lease);
  return found != leases_.end() && grant(lease, found->second.ttl, now).ok();
}

void State::revoke(uint64_t lease) {
  const auto found = leases_.find(lease);
  if (found == leases_.end()) return;
  const Granted granted = std::move(found->second);
  expiries_.erase({granted.expiry, lease});
  leases_.erase(found);
  for (const std::string& key : granted.keys) remove(key);
  if (recorder_) recorder_->ended(lease);
}

void State::expire(Time now) {
  while (!expiries_.empty() && expiries_.begin()->first <= now) revoke(expiries_.begin()->second);
}

void State::postpone(std::chrono::nanoseconds by) {
  expiries_.clear();
  for (auto& [id, granted] : leases_) {
    granted.expiry += std::chrono::duration_cast<Time::duration>(by);
    expiries_.emplace(granted.expiry, id);
  }
}

std::optional<State::Time> State::nextExpiry() const {
  if (expiries_.empty()) return std::nullopt;
  return expiries_.begin()->first;
}

void State::detach(const std::string& key, uint64_t lease) {
  const auto found = leases_.find(lease);
  if (found != leases_.end()) found->second.keys.erase(key);
}

Bytes State::await(std::string_view key, uint64_t id) {
  if (Bytes value = get(key)) return value;
  awaits_.emplace(id, key);
  awaitedKeys_.emplace(key, id);
  return nullptr;
}

void State::forget(uint64_t awaitId) {
  const auto found = awaits_.find(awaitId);
  if (found == awaits_.end()) return;
  const auto [first, last] = awaitedKeys_.equal_range(found->second);
  for (auto at = first; at != last; ++at) {
    if (at->second != awaitId) continue;
    awaitedKeys_.erase(at);
    break;
  }
  awaits_.erase(found);
}

void State::watch(uint64_t id, std::string_view prefix) {
  Watched& watched = watches_[id];
  watched.prefix = prefix;
  ++prefixLengths_[prefix.size()];
  byPrefix_[watched.prefix].insert(id);
  for (const Record& record : list(prefix)) {
    watched.queue.push_back({Change::Kind::set, record.key, record.value});
  }
  watched.queue.push_back({Change::Kind::current, {}, nullptr});
  watched.inList = watched.queue.size();
}

void State::unwatch(uint64_t id) {
  const auto found = watches_.find(id);
  if (found != watches_.end()) drop(found);
}

void State::drop(std::map<uint64_t, Watched>::iterator at) {
  const std::string& prefix = at->second.prefix;
  if (--prefixLengths_[prefix.size()] == 0) prefixLengths_.erase(prefix.size());
  auto& same = byPrefix_[prefix];
  same.erase(at->first);
  if (same.empty()) byPrefix_.erase(prefix);
  watches_.erase(at);
}

Result<std::vector<State::Event>> State::take(uint64_t watchId, size_t most) {
  const auto found = watches_.find(watchId);
  if (found == watches_.end()) {
    return error(Code::notFound, "the store has no watch {}: it fell behind, or never was",
                 watchId);
  }
  Watched& watched = found->second;
  std::vector<Event> events;
  size_t taken = 0;
  while (!watched.queue.empty() && taken < most) {
    Event event = std::move(watched.queue.front());
    watched.queue.pop_front();
    const size_t size = event.key.size() + (event.value ? event.value->size() : 0);
    if (watched.inList > 0) {
      --watched.inList;
    } else {
      watched.bytes -= size;
    }
    taken += size + sizeof(Event);
    events.push_back(std::move(event));
  }
  return events;
}

bool State::hasEvents(uint64_t watchId) const {
  const auto found = watches_.find(watchId);
  return found != watches_.end() && !found->second.queue.empty();
}

void State::announce(const Event& event) {
  if (event.kind == Change::Kind::set) {
    const auto [first, last] = awaitedKeys_.equal_range(event.key);
    for (auto at = first; at != last; ++at) {
      woken_.awaits.emplace_back(at->second, event.value);
      awaits_.erase(at->second);
    }
    awaitedKeys_.erase(first, last);
  }
  for (auto length = prefixLengths_.begin(); length != prefixLengths_.end();) {
    // tell() may drop the last watch of this length.
    const size_t size = (length++)->first;
    if (size > event.key.size()) break;
    const auto found = byPrefix_.find(std::string_view(event.key).substr(0, size));
    if (found == byPrefix_.end()) continue;
    const std::set<uint64_t> watching = found->second;
    for (uint64_t id : watching) tell(id, watches_.at(id), event);
  }
}

void State::tell(uint64_t watchId, Watched& watched, const Event& event) {
  watched.queue.push_back(event);
  watched.bytes += event.key.size() + (event.value ? event.value->size() : 0);
  if (watched.queue.size() == 1) woken_.watches.push_back(watchId);
  const size_t behind = watched.queue.size() - watched.inList;
  if (behind > limits_.backlog || watched.bytes > limits_.backlogBytes) {
    drop(watches_.find(watchId));
    woken_.watches.push_back(watchId);
  }
}

State::Woken State::takeWoken() {
  return std::exchange(woken_, Woken());
}

}  // namespace hmc::store
