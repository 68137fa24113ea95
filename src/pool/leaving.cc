#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "pool/members.h"

// How members go: others by themselves, by death or by silence, and we by leave() or because the
// others have given us up.

namespace hmc::pool {

void Members::went(uint32_t rank, const std::string& incarnation, const Status& why) {
  bool announced = false;
  std::stop_source departure;
  std::lock_guard closing(slotMutex_);
  {
    std::lock_guard lock(mutex_);
    const Other* other = findLocked(rank, incarnation);
    if (!other) return;
    announced = other->announced;
    others_.erase(rank);
    if (!why.ok()) lost_.insert(rank);
    changed_.notify_all();
    departure.swap(departure_);
  }
  departure.request_stop();
  retire(rank);
  if (announced) events_.push({PoolEvent::Kind::left, rank, why});
}

// The pages of who left are replaced by empty ones of ours: a thread that still uses a pointer into
// them goes on, and reaches nobody.
void Members::retire(uint32_t rank) {
  for (PoolSpace space : kSpaces) {
    Reach reach = slot({space, rank, 0})->close();
    if (!reach.peers) continue;
    reach.peers->revoke([](const Status&) {});
    if (!reach.data) continue;
    std::lock_guard lock(mutex_);
    retired_[slotIndex(space, rank)] = std::move(reach.peers);
  }
}

// On one host a connection that just ends says that the process has. One that ends with a goodbye
// or by silence says nothing of the kind, nor does one between hosts, where a cable may be the
// reason: then the store decides whether the member is gone.
void Members::lostPeer(const PeerState& peer, const Status& why) {
  const std::string& node = peer.channel().peer().id;
  store::Member lost;
  bool here = false;
  const bool died = peer.channel().vanished();
  {
    std::lock_guard closing(slotMutex_);
    {
      std::lock_guard lock(mutex_);
      (void)early_.take(node);
      auto found = std::find_if(others_.begin(), others_.end(), [&](const auto& entry) {
        return entry.second.record.node == node && entry.second.peer.get() == &peer;
      });
      if (found == others_.end()) return;
      Other& other = found->second;
      lost = other.member;
      here = other.here;
      if (here && died) dead_[lost.rank] = lost.incarnation;
      other.reached = false;
      other.peer = nullptr;
    }
    retire(lost.rank);
  }
  if (here && died) {
    went(lost.rank, lost.incarnation, why);
    return reap(lost);
  }
  if (!here) return;
  // Loads and stores shall work for as long as it is a member.
  std::unique_lock lock(mutex_);
  Other* other = findLocked(lost.rank, lost.incarnation);
  if (!other || other->reaching || other->reached) return;
  other->reaching = true;
  lock.unlock();
  reachLater(lost.rank, lost.incarnation);
}

// Tells the store, which may be out of reach while others die.
void Members::reap(const store::Member& dead) {
  (void)tasks_.run("hmc-pool-reap", [this, dead, group = group()] {
    // Whoever was stopped for too long may take the living for dead, but is no member any more.
    const auto self = group->find(rank_, node_.lease());
    if (!self.ok() || self->incarnation != group->self().incarnation) return;
    (void)group->reap(dead, node_.lease());
  });
}

// We were stopped or cut off for longer than our lease, and the others go on without us: nothing of
// theirs is ours to touch.
void Members::expelled(const Status& why) {
  logWarn("this process is no longer in the pool: {}", why.message());
  member_.store(false, std::memory_order_release);
  std::vector<store::Member> all;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [rank, other] : others_) all.push_back(other.member);
  }
  for (const store::Member& member : all) went(member.rank, member.incarnation, why);
  std::lock_guard closing(slotMutex_);
  for (PoolSpace space : kSpaces) (void)slot({space, rank_, 0})->close();
  events_.close();
}

void Members::closeAll() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
    changed_.notify_all();
  }
  tasks_.finish();
  Own own;  // goes after the locks
  std::map<size_t, std::shared_ptr<RemoteMapping>> retired;
  std::lock_guard closing(slotMutex_);
  for (size_t i = 0; i < size_t{2} * capacity_; ++i) slots_[i].close();
  own.swap(own_);
  std::unique_lock lock(mutex_);
  retired.swap(retired_);
  others_.clear();
  lost_.clear();
  early_.clear();
  closing_ = false;
  lock.unlock();
  retired.clear();
  // Transfers that are still on their way hold theirs, and end when their peers are gone.
  (void)occupancy_->awaitAll(2 * node_.lease());
}

Status Members::leave(Deadline deadline) {
  const auto group = this->group();
  if (!group) return status();
  Status outcome = group->status();
  Own own;
  {
    std::lock_guard closing(slotMutex_);
    for (PoolSpace space : kSpaces) (void)slot({space, rank_, 0})->close();
    own = own_;
  }
  member_.store(false, std::memory_order_release);
  const Status left = group->leave(deadline);
  if (outcome.ok()) outcome = left;
  for (const auto& memory : own) {
    if (!memory) continue;
    const Status revoked = memory->revoke(deadline.left());
    if (outcome.ok()) outcome = revoked;
  }
  thread_ = {};
  closeAll();
  std::lock_guard lock(mutex_);
  group_.reset();
  joined_ = false;
  return outcome;
}

}  // namespace hmc::pool
