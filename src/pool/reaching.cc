#include <algorithm>

#include <fmt/core.h>

#include "base/error.h"
#include "base/log.h"
#include "memory/populate.h"
#include "pool/members.h"

// How a member reaches the slots of others: it connects to their Nodes and opens their memory, at
// its place where the two share a host.

namespace hmc::pool {

void Members::renew(const Place& place, const RemoteMapping* failed) {
  std::lock_guard closing(slotMutex_);
  {
    std::lock_guard lock(mutex_);
    auto found = others_.find(place.rank);
    if (found == others_.end() || !found->second.reached || found->second.here) return;
    const SlotUse use(slot(place));
    if (!use || use->peers.get() != failed) return;
    found->second.reached = false;
  }
  retire(place.rank);
}

void Members::reachLater(uint32_t rank, const std::string& incarnation) {
  const Status started = tasks_.run(
      "hmc-pool-reach", [this, rank, incarnation] { reachNow(rank, incarnation, node_.lease()); });
  if (started.ok()) return;
  std::lock_guard lock(mutex_);
  if (Other* other = findLocked(rank, incarnation)) {
    other->reaching = false;
    other->why = started;
    changed_.notify_all();
  }
}

Status Members::reach(const Place& place, Deadline deadline) {
  HMC_TRY(status());
  if (place.rank == rank_) {
    return error(Code::notFound, "this process brings no {} memory to the pool",
                 nameOf(place.space));
  }
  std::unique_lock lock(mutex_);
  if (!others_.contains(place.rank)) {
    lock.unlock();
    const auto group = this->group();
    if (!group) return status();
    HMC_ASSIGN(const auto member, group->find(place.rank, deadline));
    came(member, Source::asked);
    lock.lock();
  }
  changed_.wait_until(lock, deadline.at(), [&] {
    auto found = others_.find(place.rank);
    return found == others_.end() || !found->second.reaching;
  });
  auto found = others_.find(place.rank);
  if (found == others_.end()) return notHere(place.rank);
  if (found->second.record.sizes[indexOf(place.space)] == 0) {
    return error(Code::notFound, "rank {} brings no {} memory to the pool", place.rank,
                 nameOf(place.space));
  }
  if (found->second.reached) return Status();
  if (found->second.reaching) {
    return error(Code::deadlineExceeded, "rank {} did not answer in time", place.rank);
  }
  const std::string incarnation = found->second.member.incarnation;
  found->second.reaching = true;
  lock.unlock();
  reachNow(place.rank, incarnation, deadline);
  lock.lock();
  const Other* other = findLocked(place.rank, incarnation);
  return other ? other->why : notHere(place.rank);
}

Status Members::notHere(uint32_t rank) const {
  return error(Code::notFound, "rank {} is not in the pool", rank);
}

void Members::reachNow(uint32_t rank, const std::string& incarnation, Deadline deadline) {
  Record record;
  bool here = false;
  {
    std::lock_guard lock(mutex_);
    Other* other = findLocked(rank, incarnation);
    if (!other) return;
    record = other->record;
    here = other->here;
  }
  auto peer = connectTo(record, here, deadline);
  Result<Opened> opened = peer.status();
  if (peer.ok() && (*peer)->channel().peer().id != record.node) {
    opened = error(Code::disconnected, "another process answers at {}", record.address);
  } else if (peer.ok()) {
    opened = openSlots(rank, record, *peer, here, deadline);
  }
  {
    std::lock_guard opening(slotMutex_);
    std::lock_guard lock(mutex_);
    Other* other = findLocked(rank, incarnation);
    if (!other) return;
    other->reaching = false;
    other->reached = opened.ok();
    other->why = opened.ok() ? Status() : opened.status().within(fmt::format("rank {}", rank));
    changed_.notify_all();
    if (opened.ok()) {
      other->peer = *peer;
      for (PoolSpace space : kSpaces) {
        Reach& reach = (*opened)[indexOf(space)];
        if (reach.peers) slot({space, rank, 0})->open(std::move(reach));
      }
    }
    if (joined_) announceLocked(*other);
  }
  if (!peer.ok()) return;
  // It may have died before we looked out for that.
  const Status ended = (*peer)->channel().status();
  if (!ended.ok()) return lostPeer(**peer, ended);
  // Also when it is not mapped: the other side must not wait for what will not come.
  if (!here) return;
  (void)(*peer)->channel().send(MessageKind::note, 0, kMappedNote, deadline);
  if (opened.ok()) providePages(rank, incarnation);
}

// Of a mapped slot, so that the first copies need not. Once nobody waits for us any more: a join
// with many members of this host would take much longer. In pieces, because the member may leave.
void Members::providePages(uint32_t rank, const std::string& incarnation) {
  constexpr size_t kPiece = size_t{16} << 20;
  Slot* const theirs = slot({PoolSpace::host, rank, 0});
  for (size_t offset = 0;; offset += kPiece) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return joined_ || closing_ || !findLocked(rank, incarnation); });
    if (closing_ || !findLocked(rank, incarnation)) return;
    lock.unlock();
    const SlotUse use(theirs);
    if (!use || !use->data || offset >= use->size) return;
    if (offset == 0 && !worthPopulating(use->size)) return;
    populate({use->data + offset, std::min(kPiece, use->size - offset), Device{}}, Access::read);
  }
}

// Two members of a host reach each other at the same time. The one with the greater id dials, and
// the other one waits for that a little.
Result<std::shared_ptr<PeerState>> Members::connectTo(const Record& record, bool here,
                                                      Deadline deadline) {
  constexpr std::chrono::milliseconds kPatience{200};
  if (here && node_.id() < record.node) {
    auto peer = node_.waitForPeer(
        [&](const PeerState& one) {
          return one.channel().peer().id == record.node && one.channel().status().ok();
        },
        record.address, earlier(deadline, kPatience));
    if (peer.ok()) return peer;
  }
  return node_.connect(record.address, {}, deadline);
}

Result<Members::Opened> Members::openSlots(uint32_t rank, const Record& record,
                                           const std::shared_ptr<PeerState>& peer, bool here,
                                           Deadline deadline) {
  Opened opened;
  for (PoolSpace space : kSpaces) {
    if (record.sizes[indexOf(space)] == 0) continue;
    HMC_ASSIGN(opened[indexOf(space)], openSlot(space, rank, peer, here, deadline));
  }
  return opened;
}

Result<Reach> Members::openSlot(PoolSpace space, uint32_t rank,
                                const std::shared_ptr<PeerState>& peer, bool here,
                                Deadline deadline) {
  Reach reach;
  if (here) {
    char* const place = addresses_.at(space, rank);
    HMC_TRY(awaitFree(space, rank, deadline));
    auto mapped = node_.open(peer, nameOf(space), {"ipc"}, deadline, place);
    if (mapped.ok()) {
      reach.peers = *std::move(mapped);
      reach.data = place;
    } else {
      logWarn("the {} slot of rank {} is not mapped, only copied: {}", nameOf(space), rank,
              mapped.status().message());
    }
  }
  if (!reach.peers) {
    HMC_ASSIGN(reach.peers, node_.open(peer, nameOf(space), {}, deadline));
  }
  reach.size = reach.peers->size();
  reach.device = reach.peers->device();
  if (reach.data) {
    reach.peers = occupancy_->hold(slotIndex(space, rank), std::move(reach.peers));
  }
  return reach;
}

// A former member's mapping is still where the next one's goes.
Status Members::awaitFree(PoolSpace space, uint32_t rank, Deadline deadline) {
  std::shared_ptr<RemoteMapping> former;
  {
    // Whoever retires it right now has it until then.
    std::lock_guard closing(slotMutex_);
    std::lock_guard lock(mutex_);
    auto found = retired_.extract(slotIndex(space, rank));
    if (!found.empty()) former = std::move(found.mapped());
  }
  former.reset();
  if (occupancy_->awaitFree(slotIndex(space, rank), deadline)) return Status();
  return error(Code::deadlineExceeded, "copies of the former rank {} still hold its addresses",
               rank);
}

}  // namespace hmc::pool
