#include "pool/copy_batch.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "base/error.h"
#include "memory/backends.h"
#include "memory/host_copy.h"
#include "pool/parts.h"

namespace hmc::pool {

void CopyBatch::run(std::span<const PoolCopy> copies, Deadline deadline) {
  uint64_t bytes = 0;
  for (const PoolCopy& copy : copies) bytes += copy.size;
  const bool much = bytes >= kStreamingThreshold;
  for (size_t i = 0; i < copies.size();) {
    const size_t copied = needsEngine(copies[i]) ? 0 : copier_.copyRun(copies.subspan(i), much);
    i += copied;
    if (copied > 0) continue;
    if (transfers_.empty()) transfers_.reserve(copies.size() - i);
    const Status planned = plan(copies[i], i, deadline);
    if (!planned.ok()) state_.settle(i, planned);
    ++i;
    if (!transfers_.empty() && transfers_.back().element + 1 == i)
      i += planAlike(copies.subspan(i), i);
  }
  registerUnknown();
  for (List& list : makeLists()) start(list);
  for (auto& part : others_) state_.add(std::move(part));
}

bool CopyBatch::needsEngine(const PoolCopy& copy) const {
  return (to_.last && !to_.last->onHost() && to_.last->has(copy.to, copy.size)) ||
         (from_.last && !from_.last->onHost() && from_.last->has(copy.from, copy.size));
}

Result<const CopyEnd*> CopyBatch::endAt(Side& side, const void* address, size_t size,
                                        Deadline deadline) {
  if (side.last && side.last->has(address, size)) return side.last;
  HMC_ASSIGN(CopyEnd end, copier_.resolve(address, size, deadline));
  if (end.known()) return side.last = &ends_.emplace_back(std::move(end));
  side.unknown = std::move(end);
  return &side.unknown;
}

Status CopyBatch::plan(const PoolCopy& copy, size_t element, Deadline deadline) {
  if (copy.size == 0) return Status();
  HMC_ASSIGN(const CopyEnd* to, endAt(to_, copy.to, copy.size, deadline));
  HMC_ASSIGN(const CopyEnd* from, endAt(from_, copy.from, copy.size, deadline));
  if (!to->peers && !from->peers) {
    HMC_ASSIGN(auto pending,
               PendingCopy::start(to->part(copy.to, copy.size), from->part(copy.from, copy.size)));
    others_.push_back(std::make_unique<DevicePart>(element, std::move(pending)));
    return Status();
  }
  if (to->peers && from->peers && !to->onHost() && !from->onHost()) {
    HMC_ASSIGN(const Region buffer, hostBackend().allocate(0, RelayPart::kBuffer));
    HMC_ASSIGN(auto memory, node_.registerMemory("", buffer, Access::readWrite, /*owned=*/true));
    others_.push_back(std::make_unique<RelayPart>(
        element, RelayPart::Far{from->peers, from->offsetOf(copy.from)},
        RelayPart::Far{to->peers, to->offsetOf(copy.to)}, copy.size, std::move(memory)));
    return Status();
  }
  addTransfer(copy, element, *to, *from);
  return Status();
}

// One by one they cost more than copying them: each end is looked up several times.
size_t CopyBatch::planAlike(std::span<const PoolCopy> copies, size_t firstElement) {
  Transfer next = transfers_.back();
  const CopyEnd* const to = to_.last;
  const CopyEnd* const from = from_.last;
  const bool put = next.kind == OpKind::put;
  // What lies on the host is copied by the processor where it can.
  if (!to || !from || (to->onHost() && from->onHost())) return 0;
  if (!next.own || next.far != (put ? to : from)) return 0;
  if (next.own != &(put ? from : to)->own) return 0;
  size_t count = 0;
  for (const PoolCopy& copy : copies) {
    if (copy.size == 0 || !to->has(copy.to, copy.size) || !from->has(copy.from, copy.size)) break;
    next.element = firstElement + count++;
    next.farOffset = next.far->offsetOf(put ? copy.to : copy.from);
    next.ownOffset = (put ? from : to)->offsetOf(put ? copy.from : copy.to);
    next.local = (put ? from : to)->part(put ? copy.from : copy.to, copy.size);
    transfers_.push_back(next);
  }
  return count;
}

void CopyBatch::addTransfer(const PoolCopy& copy, size_t element, const CopyEnd& to,
                            const CopyEnd& from) {
  // Of two peers' slots the one that lies here counts as ours.
  const bool put = to.peers && !(from.peers && to.onHost());
  const CopyEnd& far = put ? to : from;
  const CopyEnd& near = put ? from : to;
  const void* const farAddress = put ? copy.to : copy.from;
  const void* const nearAddress = put ? copy.from : copy.to;
  transfers_.push_back({element, put ? OpKind::put : OpKind::get, &far, far.offsetOf(farAddress),
                        near.part(nearAddress, copy.size), near.peers ? &near.peers : nullptr,
                        near.own ? &near.own : nullptr, near.own ? near.offsetOf(nearAddress) : 0});
}

// Memory that nobody registered is registered for these copies alone, neighbours together.
void CopyBatch::registerUnknown() {
  std::vector<Transfer*> unknown;
  for (Transfer& one : transfers_) {
    if (!one.own) unknown.push_back(&one);
  }
  std::sort(unknown.begin(), unknown.end(), [](const Transfer* a, const Transfer* b) {
    return std::less<>()(a->local.at(0), b->local.at(0));
  });
  const std::span<Transfer*> all(unknown);
  for (size_t first = 0, next = 0; first < all.size(); first = next) {
    Region run = all[first]->local;
    for (next = first + 1; next < all.size(); ++next) {
      const Region& one = all[next]->local;
      const auto offset = static_cast<size_t>(one.at(0) - run.at(0));
      if (offset > run.size || one.device != run.device) break;
      run.size = std::max(run.size, offset + one.size);
    }
    registerTogether(all.subspan(first, next - first), run);
  }
  if (!unknown.empty()) std::erase_if(transfers_, [](const Transfer& one) { return !one.own; });
}

// Where it fails, those copies fail, and no others.
void CopyBatch::registerTogether(std::span<Transfer*> run, const Region& region) {
  auto memory = node_.registerMemory("", region, Access::readWrite, false);
  if (!memory.ok()) {
    for (const Transfer* one : run) state_.settle(one->element, memory.status());
    return;
  }
  const auto& own = registered_.emplace_back(*std::move(memory));
  for (Transfer* one : run) {
    one->own = &own;
    one->ownOffset = static_cast<uint64_t>(one->local.at(0) - region.at(0));
  }
}

bool CopyBatch::List::takes(const Transfer& one) const {
  return first->far->peers == one.far->peers && first->kind == one.kind &&
         *first->own == *one.own && first->seenMapping() == one.seenMapping();
}

void CopyBatch::List::add(const Transfer& one) {
  if (!first) first = &one;
  elements.push_back(one.element);
  const Block block{one.ownOffset, one.farOffset, one.local.size};
  if (!blocks.empty()) {
    Block& last = blocks.back();
    if (last.localOffset + last.size == block.localOffset &&
        last.remoteOffset + last.size == block.remoteOffset) {
      last.size += block.size;
      return;
    }
  }
  blocks.push_back(block);
}

std::vector<CopyBatch::List> CopyBatch::makeLists() const {
  std::vector<List> lists;
  std::map<std::tuple<const RemoteMapping*, OpKind, const LocalMemory*, const RemoteMapping*>,
           size_t>
      known;
  size_t at = 0;
  for (const Transfer& one : transfers_) {
    if (lists.empty() || !lists[at].takes(one)) {
      at = known
               .try_emplace({one.far->peers.get(), one.kind, one.own->get(), one.seenMapping()},
                            lists.size())
               .first->second;
      if (at == lists.size()) lists.emplace_back();
      // Mostly all of them go into the first one.
      if (at == 0 && lists[0].blocks.empty()) lists[0].reserve(transfers_.size());
    }
    lists[at].add(one);
  }
  return lists;
}

void CopyBatch::start(List& list) {
  const Transfer& first = *list.first;
  const auto& peers = first.far->peers;
  const Place& place = first.far->place;
  auto ticket = RemoteMapping::start(peers, first.kind, *first.own, list.blocks);
  if (!ticket.ok()) {
    if (ticket.status().code() == Code::disconnected) members_.renew(place, peers.get());
    for (size_t element : list.elements) state_.settle(element, ticket.status());
    return;
  }
  auto after = [&members = members_, place, mapping = peers.get(),
                seen = first.seen ? *first.seen : nullptr](Status outcome) {
    if (outcome.code() == Code::disconnected) members.renew(place, mapping);
    if (outcome.ok() && seen && seen->revoked()) return seen->revokedStatus();
    return outcome;
  };
  state_.add(std::make_unique<TransferPart>(std::move(list.elements), *std::move(ticket),
                                            std::move(after)));
}

}  // namespace hmc::pool
