#include "pool/copier.h"

#include <algorithm>
#include <mutex>
#include <tuple>

#include "base/error.h"
#include "memory/backends.h"
#include "memory/host_copy.h"
#include "pool/parts.h"

namespace hmc::pool {

// One end is a peer's slot, the other memory that this process sees.
struct Transfer {
  size_t element;
  OpKind kind;
  std::shared_ptr<RemoteMapping> peers;
  uint64_t remoteOffset;
  Place place;
  Region local;
  std::shared_ptr<LocalMemory> own;  // around `local`; prepare() makes it where there is none
  uint64_t localOffset;
  std::shared_ptr<RemoteMapping> seen;  // `local` is a peer's slot that is mapped here
};

struct Copier::Work {
  bool isMuch = false;  // more bytes than fit into caches
  std::vector<Transfer> transfers;
  std::vector<std::unique_ptr<PoolCopyPart>> others;
};

namespace {

Status passesTheEnd(const Place& place, size_t size, uint64_t capacity) {
  return error(Code::outOfRange,
               "a copy of {} bytes at offset {} would pass the end of rank {}'s {} slot, which has "
               "{} bytes",
               size, place.offset, place.rank, nameOf(place.space), capacity);
}

// What a slot is when a copy needs nothing but the processor.
struct Direct {
  explicit Direct(const SlotUse& use, const std::optional<Place>& place, size_t size)
      : ok(!place ||
           (use && use->data && use->device.isHost() && fits(place->offset, size, use->size))),
        peers(ok && place ? use->peers.get() : nullptr),
        offset(place ? place->offset : 0) {}
  const bool ok;
  const RemoteMapping* const peers;  // none for memory of ours
  const uint64_t offset;
};

}  // namespace

bool Copier::copyAtOnce(void* to, const void* from, size_t size, bool partOfMuch,
                        Between* between) const {
  const auto target = addresses_.find(to);
  const auto source = addresses_.find(from);
  if (size == 0 || (!target && !isOnHost(to)) || (!source && !isOnHost(from))) return false;
  const SlotUse into(target ? members_.slot(*target) : nullptr);
  const SlotUse outOf(source ? members_.slot(*source) : nullptr);
  const Direct there(into, target, size);
  const Direct here(outOf, source, size);
  if (!there.ok || !here.ok) return false;
  if (between) {
    const Between now{into.opening(), outOf.opening(), true};
    if (between->known && (between->to != now.to || between->from != now.from)) return false;
    *between = now;
  }
  auto* dst = static_cast<char*>(to);
  auto* src = const_cast<char*>(static_cast<const char*>(from));  // NOLINT: only read
  if (there.peers == here.peers) {
    // Within one slot the two may overlap.
    moveHost(dst, src, size);
    return !there.peers || !there.peers->revoked();
  }
  if (!there.peers) return here.peers->copyMapped(OpKind::get, dst, here.offset, size, partOfMuch);
  return there.peers->copyMapped(OpKind::put, src, there.offset, size, partOfMuch) &&
         (!here.peers || !here.peers->revoked());
}

// As much as the processor does by itself; leaves the rest.
Status Copier::copyDirectly(void*& to, const void*& from, size_t& size, Deadline deadline) const {
  auto* dst = static_cast<char*>(to);
  auto* src = static_cast<const char*>(from);
  const bool overlap = std::less<>()(src, dst + size) && std::less<>()(dst, src + size);
  Between between;
  for (bool first = true; size > 0; first = false) {
    const size_t piece = overlap ? size : std::min(size, kChunk);
    if (!copyAtOnce(to, from, piece, false, &between)) {
      return first ? Status() : stoppedHalfway(to, from, size, deadline);
    }
    to = dst += piece;
    from = src += piece;
    size -= piece;
    if (size > 0 && deadline.passed()) {
      return error(Code::deadlineExceeded, "{} bytes of a copy are left", size);
    }
  }
  return Status();
}

// The rest must not go to whoever has the rank next.
Status Copier::stoppedHalfway(const void* to, const void* from, size_t size,
                              Deadline deadline) const {
  HMC_TRY(resolve(to, size, deadline).status());
  HMC_TRY(resolve(from, size, deadline).status());
  return error(Code::disconnected, "a member left while {} bytes of a copy were still to come",
               size);
}

Status Copier::copySlowly(void* to, const void* from, size_t size, Timeout timeout) {
  const Deadline deadline(timeout);
  HMC_TRY(copyDirectly(to, from, size, deadline));
  if (size == 0) return Status();
  if (const auto outcome = transferAlone(to, from, size, deadline)) return *outcome;
  HMC_ASSIGN(const auto state, start({{to, from, size}}, deadline));
  const Status outcome = state->wait(deadline);
  return state->done() ? outcome : state->cancel();
}

// Between registered memory of ours and a slot that is not mapped here: one put or get of the
// engine, without the lists of a batch. Nothing for any other copy.
std::optional<Status> Copier::transferAlone(void* to, const void* from, size_t size,
                                            Deadline deadline) const {
  if (Status member = members_.status(); !member.ok()) return member;
  const auto target = resolve(to, size, deadline);
  if (!target.ok()) return target.status();
  const auto source = resolve(from, size, deadline);
  if (!source.ok()) return source.status();
  const bool put = target->peers != nullptr;
  const End& far = put ? *target : *source;
  const End& near = put ? *source : *target;
  if (!far.peers || far.region.ptr || near.peers || !near.own) return std::nullopt;
  Status outcome = far.peers->run(put ? OpKind::put : OpKind::get, *near.own, near.offset,
                                  far.offset, size, deadline.left());
  if (outcome.code() == Code::disconnected) members_.renew(far.place, far.peers.get());
  return outcome;
}

Status Copier::copy2d(const Rows& rows, Timeout timeout) {
  if (rows.width > rows.toPitch || rows.width > rows.fromPitch) {
    return error(Code::invalidArgument,
                 "rows of {} bytes do not fit into pitches of {} (to) and {} (from) bytes",
                 rows.width, rows.toPitch, rows.fromPitch);
  }
  if (rows.width == 0 || rows.count == 0) return Status();
  HMC_TRY(checkRows(rows.to, rows.toPitch, rows));
  HMC_TRY(checkRows(rows.from, rows.fromPitch, rows));
  std::vector<PoolCopy> copies;
  copies.reserve(rows.count);
  for (size_t row = 0; row < rows.count; ++row) {
    copies.push_back({static_cast<char*>(rows.to) + row * rows.toPitch,
                      static_cast<const char*>(rows.from) + row * rows.fromPitch, rows.width});
  }
  const Deadline deadline(timeout);
  HMC_ASSIGN(const auto state, start(copies, deadline));
  const Status outcome = state->wait(deadline);
  return state->done() ? outcome : state->cancel();
}

// Before there is a list of them: a count that cannot be would fill the memory.
Status Copier::checkRows(const void* at, size_t pitch, const Rows& rows) const {
  uint64_t size = 0;
  if (__builtin_mul_overflow(rows.count - 1, pitch, &size) ||
      __builtin_add_overflow(size, rows.width, &size)) {
    return error(Code::outOfRange, "{} rows that begin {} bytes apart pass the end of all memory",
                 rows.count, pitch);
  }
  const auto place = addresses_.find(at);
  if (!place) return Status();
  const uint64_t stride = addresses_.layout().ranges[indexOf(place->space)].stride;
  return fits(place->offset, size, stride) ? Status() : passesTheEnd(*place, size, stride);
}

std::shared_ptr<LocalMemory> Copier::registeredAround(const void* address, size_t size) const {
  const auto* first = static_cast<const char*>(address);
  std::shared_lock lock(mutex_);
  auto next = registered_.upper_bound(first);
  if (next == registered_.begin()) return nullptr;
  const auto& [begin, memory] = *std::prev(next);
  const auto offset = static_cast<size_t>(first - begin);
  return fits(offset, size, memory->region().size) ? memory : nullptr;
}

Result<Copier::End> Copier::resolveSlot(const Place& place, size_t size, Deadline deadline) const {
  Slot* const slot = members_.slot(place);
  for (bool again = false;; again = true) {
    {
      const SlotUse use(slot);
      if (use) {
        if (!fits(place.offset, size, use->size)) return passesTheEnd(place, size, use->size);
        char* const data = use->data ? use->data + place.offset : nullptr;
        return End{{data, size, use->device}, use->own, use->peers, place.offset, place};
      }
    }
    if (again) return error(Code::disconnected, "rank {} left meanwhile", place.rank);
    HMC_TRY(members_.reach(place, deadline));
  }
}

Result<Copier::End> Copier::resolve(const void* address, size_t size, Deadline deadline) const {
  if (const auto place = addresses_.find(address)) return resolveSlot(*place, size, deadline);
  HMC_ASSIGN(const Device device, deviceOrHost(address));
  End end;
  end.region = {const_cast<void*>(address), size, device};  // NOLINT: a source is only read
  end.own = registeredAround(address, size);
  if (end.own) end.offset = static_cast<size_t>(end.region.at(0) - end.own->region().at(0));
  return end;
}

Status Copier::plan(const PoolCopy& copy, size_t index, Work& work, Deadline deadline) const {
  if (copy.size == 0) return Status();
  if (copy.size <= kAtOnce && copyAtOnce(copy.to, copy.from, copy.size, work.isMuch))
    return Status();
  HMC_ASSIGN(End to, resolve(copy.to, copy.size, deadline));
  HMC_ASSIGN(End from, resolve(copy.from, copy.size, deadline));
  if (!to.peers && !from.peers) {
    HMC_ASSIGN(auto pending, PendingCopy::start(to.region, from.region));
    work.others.push_back(std::make_unique<DevicePart>(index, std::move(pending)));
    return Status();
  }
  if (to.peers && from.peers && !to.onHost() && !from.onHost()) {
    HMC_ASSIGN(const Region buffer, hostBackend().allocate(0, RelayPart::kBuffer));
    HMC_ASSIGN(auto memory, node_.registerMemory("", buffer, Access::readWrite, /*owned=*/true));
    work.others.push_back(std::make_unique<RelayPart>(
        index, RelayPart::Far{from.peers, from.offset}, RelayPart::Far{to.peers, to.offset},
        copy.size, std::move(memory)));
    return Status();
  }
  // Of two peers' slots the one that lies here counts as ours.
  const bool put = to.peers && !(from.peers && to.onHost());
  End& far = put ? to : from;
  End& near = put ? from : to;
  work.transfers.push_back({index, put ? OpKind::put : OpKind::get, far.peers, far.offset,
                            far.place, near.region, near.peers ? nullptr : near.own,
                            near.peers ? 0 : near.offset, near.peers});
  return Status();
}

// Memory that nobody registered is registered for these copies alone, neighbours together. Where
// that fails, those copies fail, and no others.
void Copier::prepare(Work& work, PoolCopyState& state) const {
  std::vector<Transfer*> unknown;
  for (Transfer& one : work.transfers) {
    if (!one.own) unknown.push_back(&one);
  }
  std::sort(unknown.begin(), unknown.end(), [](const Transfer* a, const Transfer* b) {
    return std::less<>()(a->local.at(0), b->local.at(0));
  });
  for (size_t first = 0, next = 0; first < unknown.size(); first = next) {
    Region run = unknown[first]->local;
    for (next = first + 1; next < unknown.size(); ++next) {
      const Region& one = unknown[next]->local;
      const auto offset = static_cast<size_t>(one.at(0) - run.at(0));
      if (offset > run.size || one.device != run.device) break;
      run.size = std::max(run.size, offset + one.size);
    }
    const auto memory = node_.registerMemory("", run, Access::readWrite, false);
    for (size_t i = first; i < next; ++i) {
      if (!memory.ok()) {
        state.settle(unknown[i]->element, memory.status());
        continue;
      }
      unknown[i]->own = *memory;
      unknown[i]->localOffset = static_cast<size_t>(unknown[i]->local.at(0) - run.at(0));
    }
  }
  std::erase_if(work.transfers, [](const Transfer& one) { return !one.own; });
}

void Copier::post(Work& work, PoolCopyState& state) const {
  struct List {
    Transfer* first = nullptr;
    std::vector<Block> blocks;
    std::vector<size_t> elements;
  };
  std::map<std::tuple<RemoteMapping*, OpKind, LocalMemory*, RemoteMapping*>, List> lists;
  for (Transfer& one : work.transfers) {
    List& list = lists[{one.peers.get(), one.kind, one.own.get(), one.seen.get()}];
    if (!list.first) list.first = &one;
    list.elements.push_back(one.element);
    const Block block{one.localOffset, one.remoteOffset, one.local.size};
    if (!list.blocks.empty()) {
      Block& last = list.blocks.back();
      if (last.localOffset + last.size == block.localOffset &&
          last.remoteOffset + last.size == block.remoteOffset) {
        last.size += block.size;
        continue;
      }
    }
    list.blocks.push_back(block);
  }
  for (auto& [key, list] : lists) {
    const Transfer& first = *list.first;
    auto ticket = RemoteMapping::start(first.peers, first.kind, first.own, list.blocks);
    if (!ticket.ok()) {
      if (ticket.status().code() == Code::disconnected)
        members_.renew(first.place, first.peers.get());
      for (size_t element : list.elements) state.settle(element, ticket.status());
      continue;
    }
    auto after = [this, place = first.place, peers = first.peers.get(),
                  seen = first.seen](Status outcome) {
      if (outcome.code() == Code::disconnected) members_.renew(place, peers);
      if (outcome.ok() && seen && seen->revoked()) return seen->revokedStatus();
      return outcome;
    };
    state.add(std::make_unique<TransferPart>(std::move(list.elements), *std::move(ticket),
                                             std::move(after)));
  }
  for (auto& part : work.others) state.add(std::move(part));
}

Result<std::shared_ptr<PoolCopyState>> Copier::start(const std::vector<PoolCopy>& copies,
                                                     Deadline deadline) {
  HMC_TRY(members_.status());
  auto state = std::make_shared<PoolCopyState>(copies.size());
  Work work;
  uint64_t bytes = 0;
  for (const PoolCopy& copy : copies) bytes += copy.size;
  work.isMuch = bytes >= kStreamingThreshold;
  for (size_t i = 0; i < copies.size(); ++i) {
    const Status planned = plan(copies[i], i, work, deadline);
    if (!planned.ok()) state->settle(i, planned);
  }
  prepare(work, *state);
  post(work, *state);
  return state;
}

Status Copier::registerMemory(void* data, size_t size) {
  HMC_ASSIGN(const Device device, deviceOf(data));
  if (addresses_.find(data)) {
    return error(Code::invalidArgument, "{} is a slot of the pool and needs no registration", data);
  }
  std::unique_lock lock(mutex_);
  auto found = registered_.find(static_cast<const char*>(data));
  if (found != registered_.end() && found->second->region().size == size) return Status();
  if (found != registered_.end()) {
    return error(Code::alreadyExists, "{} is registered with {} bytes, not {}: unregister it first",
                 data, found->second->region().size, size);
  }
  HMC_ASSIGN(auto memory,
             node_.registerMemory("", {data, size, device}, Access::readWrite, /*owned=*/false));
  registered_.emplace(static_cast<const char*>(data), std::move(memory));
  return Status();
}

Status Copier::unregisterMemory(void* data) {
  std::shared_ptr<LocalMemory> gone;  // after the lock
  std::unique_lock lock(mutex_);
  auto found = registered_.extract(static_cast<const char*>(data));
  if (found.empty()) return error(Code::notFound, "{} is not registered with the pool", data);
  gone = std::move(found.mapped());
  return Status();
}

}  // namespace hmc::pool
