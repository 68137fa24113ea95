#include "agent/remote_agent.h"

#include <algorithm>

#include "base/error.h"

namespace hmc::agent {

Result<RemoteAgent::Place> RemoteAgent::find(uint64_t address, uint64_t size, Deadline deadline) {
  Lock lock(mutex_);
  dropIfGoneLocked();
  for (bool asked = false;;) {
    const auto found = memory_.around(address, 1);
    if (found == memory_.end()) {
      if (asked) {
        return error(Code::notFound,
                     "the engine {} has no registered memory at {:#x}: it registered none there, "
                     "or took it back",
                     id_, address);
      }
      asked = true;
      HMC_TRY(refresh(lock, deadline));
      continue;
    }
    const auto& [begin, range] = *found;
    const uint64_t offset = address - begin;
    if (range.value.opened)
      return Place{range.value.opened, offset, std::min(size, range.size - offset)};
    HMC_TRY(open(lock, begin, range.value.number, deadline));
  }
}

void RemoteAgent::forget(const RemoteRegion& region) {
  const std::lock_guard lock(mutex_);
  for (auto one = memory_.begin(); one != memory_.end(); ++one) {
    if (one->second.value.opened.get() != &region) continue;
    memory_.erase(one);
    return;
  }
}

// Its process ended, or the network did. Whoever has its id now has other memory.
void RemoteAgent::dropIfGoneLocked() {
  if (!peer_ || peer_->status().ok()) return;
  peer_.reset();
  memory_.clear();
}

Status RemoteAgent::awaitTurn(Lock& lock, Deadline deadline) {
  if (changed_.wait_until(lock, deadline.at(), [this] { return !asking_; })) return Status();
  return error(Code::deadlineExceeded, "the engine {} was not reached in time", id_);
}

Status RemoteAgent::refresh(Lock& lock, Deadline deadline) {
  HMC_TRY(awaitTurn(lock, deadline));
  asking_ = true;
  lock.unlock();
  const auto entries = store_->list(keyPrefix(id_), deadline);
  lock.lock();
  asking_ = false;
  changed_.notify_all();
  return entries.ok() ? learnLocked(*entries) : entries.status();
}

Status RemoteAgent::learnLocked(const std::vector<store::Entry>& entries) {
  const auto known = std::find_if(entries.begin(), entries.end(), [this](const store::Entry& one) {
    return one.key == recordKey(id_);
  });
  if (known == entries.end()) {
    return error(Code::notFound, "the store knows no engine {}: it was not created, or it is gone",
                 id_);
  }
  HMC_ASSIGN(Record record, Record::decode(known->value));
  if (record.incarnation != record_.incarnation) {
    peer_.reset();
    memory_.clear();
  }
  record_ = std::move(record);
  const std::string prefix = memoryPrefix(id_, record_.incarnation);
  for (const store::Entry& entry : entries) {
    if (entry.key.rfind(prefix, 0) != 0) continue;
    HMC_ASSIGN(const auto registered, decodeMemory(entry.value));
    for (const Registered& one : registered) {
      const auto before = memory_.at(one.begin);
      if (before != memory_.end()) {
        if (before->second.value.number >= one.number) continue;
        memory_.erase(before);
      }
      memory_.add(one.begin, one.size, {one.number, nullptr});
    }
  }
  return Status();
}

Status RemoteAgent::open(Lock& lock, uint64_t begin, uint64_t number, Deadline deadline) {
  if (asking_) return awaitTurn(lock, deadline);  // what it learns may be what we want
  asking_ = true;
  const Record record = record_;
  std::optional<Peer> peer = peer_;
  lock.unlock();
  auto opened = openUnlocked(peer, record, number, deadline);
  lock.lock();
  asking_ = false;
  changed_.notify_all();
  // Only find() of the thread whose turn it was changes these, so they are as they were, but for
  // what was forgotten.
  peer_ = std::move(peer);
  const auto place = memory_.at(begin);
  const bool same = place != memory_.end() && place->second.value.number == number;
  if (opened.ok()) {
    if (same) place->second.value.opened = *std::move(opened);
    return Status();
  }
  if (opened.status().code() != Code::notFound) {
    return opened.status().within(fmt::format("engine {}", id_));
  }
  // The store's list has what is no longer registered until all of one call is gone.
  if (same) memory_.erase(place);
  return Status();
}

Result<std::shared_ptr<const RemoteRegion>> RemoteAgent::openUnlocked(std::optional<Peer>& peer,
                                                                      const Record& record,
                                                                      uint64_t number,
                                                                      Deadline deadline) {
  if (!peer) {
    HMC_ASSIGN(peer, node_.connectOnce(record.address, deadline.left()));
  }
  HMC_ASSIGN(auto region, peer->open(regionName(record.incarnation, number), deadline.left()));
  return std::make_shared<const RemoteRegion>(std::move(region));
}

}  // namespace hmc::agent
