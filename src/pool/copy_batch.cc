#include "pool/copy_batch.h"

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "memory/backends.h"
#include "memory/host_copy.h"
#include "pool/parts.h"

namespace hmc::pool {

namespace {

// Where an end begins and how large it is: a copy of that, because the compiler reads what others
// may see again for every block.
struct Bounds {
  explicit Bounds(const CopyEnd& end) : begin(end.begin), size(end.size) {}
  uint64_t offsetOf(const void* address) const {
    return static_cast<uint64_t>(static_cast<const char*>(address) - begin);
  }
  bool has(const void* address, size_t bytes) const { return fits(offsetOf(address), bytes, size); }
  const char* const begin;
  const uint64_t size;
};

// The memory of a list, for this thread's next one: allocating it takes longer than planning some
// copies. Up to a size that a program does not miss.
constexpr size_t kLargestSpare = 4096;
std::vector<Block>& spare() {
  static thread_local std::vector<Block> blocks;
  return blocks;
}
std::vector<Block> takeSpare(size_t wanted) {
  std::vector<Block> blocks = std::move(spare());
  blocks.clear();
  blocks.reserve(wanted);
  return blocks;
}
void giveSpare(std::vector<Block> blocks) {
  if (blocks.capacity() <= kLargestSpare) spare() = std::move(blocks);
}

}  // namespace

void CopyBatch::run(std::span<const PoolCopy> copies, Deadline deadline) {
  uint64_t bytes = 0;
  for (const PoolCopy& copy : copies) bytes += copy.size;
  const bool much = bytes >= kStreamingThreshold;
  for (size_t i = 0; i < copies.size();) {
    const size_t copied = needsEngine(copies[i]) ? 0 : copier_.copyRun(copies.subspan(i), much);
    i += copied;
    if (copied > 0) continue;
    i += plan(copies.subspan(i), i, deadline);
  }
  registerUnknown();
  for (List& list : lists_) start(list);
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

size_t CopyBatch::plan(std::span<const PoolCopy> copies, size_t first, Deadline deadline) {
  size_t planned = 1;
  const Status status = planSome(copies, first, deadline, planned);
  state_.settle({first, 1}, status);
  return planned;
}

Status CopyBatch::planSome(std::span<const PoolCopy> copies, size_t first, Deadline deadline,
                           size_t& planned) {
  const PoolCopy& copy = copies.front();
  if (copy.size == 0) return Status();
  HMC_ASSIGN(const CopyEnd* to, endAt(to_, copy.to, copy.size, deadline));
  HMC_ASSIGN(const CopyEnd* from, endAt(from_, copy.from, copy.size, deadline));
  if (!to->peers && !from->peers) {
    HMC_ASSIGN(auto pending,
               PendingCopy::start(to->part(copy.to, copy.size), from->part(copy.from, copy.size)));
    others_.push_back(std::make_unique<DevicePart>(first, std::move(pending)));
    return Status();
  }
  if (to->peers && from->peers && !to->onHost() && !from->onHost()) {
    HMC_ASSIGN(const Region buffer, hostBackend().allocate(0, RelayPart::kBuffer));
    HMC_ASSIGN(auto memory, node_.registerMemory("", buffer, Access::readWrite, /*owned=*/true));
    others_.push_back(std::make_unique<RelayPart>(
        first, RelayPart::Far{from->peers, from->offsetOf(copy.from)},
        RelayPart::Far{to->peers, to->offsetOf(copy.to)}, copy.size, std::move(memory)));
    return Status();
  }
  planned = addTransfers(copies, first, *to, *from);
  return Status();
}

size_t CopyBatch::addTransfers(std::span<const PoolCopy> copies, size_t first, const CopyEnd& to,
                               const CopyEnd& from) {
  // Of two peers' slots the one that lies here counts as ours.
  const bool put = to.peers && !(from.peers && to.onHost());
  const OpKind kind = put ? OpKind::put : OpKind::get;
  const CopyEnd& far = put ? to : from;
  const CopyEnd& near = put ? from : to;
  const auto* const seen = near.peers ? &near.peers : nullptr;
  if (!near.own) {
    const PoolCopy& copy = copies.front();
    unknown_.push_back({first, kind, &far, far.offsetOf(put ? copy.to : copy.from),
                        near.part(put ? copy.from : copy.to, copy.size), seen});
    return 1;
  }
  List& list = listLike({kind, &far, &near.own, seen});
  // Mostly all of them go into the first list.
  if (lists_.size() == 1 && list.blocks.empty()) list.blocks = takeSpare(copies.size());
  // What lies on the host is copied by the processor where it can.
  const bool alone = to.onHost() && from.onHost();
  const Bounds toBounds(to);
  const Bounds fromBounds(from);
  size_t count = 1;
  while (!alone && count < copies.size() && copies[count].size != 0 &&
         toBounds.has(copies[count].to, copies[count].size) &&
         fromBounds.has(copies[count].from, copies[count].size))
    ++count;
  list.blocks.resize(list.blocks.size() + count);
  Block* next = &list.blocks.back() + 1 - count;
  for (const PoolCopy& copy : copies.first(count)) {
    const uint64_t toOffset = toBounds.offsetOf(copy.to);
    const uint64_t fromOffset = fromBounds.offsetOf(copy.from);
    *next++ = {put ? fromOffset : toOffset, put ? toOffset : fromOffset, copy.size};
  }
  list.elements.push_back({first, count});
  return count;
}

// Neighbours on both sides are one block.
void CopyBatch::List::join() {
  const auto follows = [](const Block& block, const Block& next) {
    return block.localOffset + block.size == next.localOffset &&
           block.remoteOffset + block.size == next.remoteOffset;
  };
  auto last = std::adjacent_find(blocks.begin(), blocks.end(), follows);
  if (last == blocks.end()) return;
  for (auto next = last + 1; next != blocks.end(); ++next) {
    if (follows(*last, *next)) {
      last->size += next->size;
    } else {
      *++last = *next;
    }
  }
  blocks.erase(last + 1, blocks.end());
}

// The first list is not in `known_`: mostly there is no other.
CopyBatch::List& CopyBatch::listLike(const List& wanted) {
  if (!lists_.empty() && !lists_[lastList_].isLike(wanted)) {
    const Key key{wanted.far->peers.get(), wanted.kind, wanted.own->get(), wanted.seenMapping()};
    lastList_ =
        lists_.front().isLike(wanted) ? 0 : known_.try_emplace(key, lists_.size()).first->second;
  }
  if (lastList_ == lists_.size()) lists_.push_back(wanted);
  return lists_[lastList_];
}

// Memory that nobody registered is registered for these copies alone, neighbours together.
void CopyBatch::registerUnknown() {
  std::sort(unknown_.begin(), unknown_.end(), [](const Transfer& a, const Transfer& b) {
    return std::less<>()(a.local.at(0), b.local.at(0));
  });
  const std::span<const Transfer> all(unknown_);
  for (size_t first = 0, next = 0; first < all.size(); first = next) {
    Region run = all[first].local;
    for (next = first + 1; next < all.size(); ++next) {
      const Region& one = all[next].local;
      const auto offset = static_cast<size_t>(one.at(0) - run.at(0));
      if (offset > run.size || one.device != run.device) break;
      run.size = std::max(run.size, offset + one.size);
    }
    registerTogether(all.subspan(first, next - first), run);
  }
}

// Where it fails, those copies fail, and no others.
void CopyBatch::registerTogether(std::span<const Transfer> run, const Region& region) {
  auto memory = node_.registerMemory("", region, Access::readWrite, false);
  if (!memory.ok()) {
    for (const Transfer& one : run) state_.settle({one.element, 1}, memory.status());
    return;
  }
  const auto& own = registered_.emplace_back(*std::move(memory));
  for (const auto& [element, kind, far, farOffset, local, seen] : run) {
    List& list = listLike({kind, far, &own, seen});
    list.blocks.push_back(
        {static_cast<uint64_t>(local.at(0) - region.at(0)), farOffset, local.size});
    list.elements.push_back({element, 1});
  }
}

void CopyBatch::start(List& list) {
  list.join();
  const auto& peers = list.far->peers;
  const Place& place = list.far->place;
  auto ticket = RemoteMapping::start(peers, list.kind, *list.own, list.blocks);
  giveSpare(std::move(list.blocks));
  if (!ticket.ok()) {
    if (ticket.status().code() == Code::disconnected) members_.renew(place, peers.get());
    for (const PoolElements& some : list.elements) state_.settle(some, ticket.status());
    return;
  }
  auto after = [&members = members_, place, mapping = peers.get(),
                seen = list.seen ? *list.seen : nullptr](const Status& outcome) {
    if (outcome.code() == Code::disconnected) members.renew(place, mapping);
    return outcome.ok() && seen ? seen->takenStatus() : outcome;
  };
  state_.add(std::make_unique<TransferPart>(std::move(list.elements), *std::move(ticket),
                                            std::move(after)));
}

}  // namespace hmc::pool
