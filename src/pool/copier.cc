#include "pool/copier.h"

#include <algorithm>
#include <mutex>

#include "base/error.h"
#include "memory/host_copy.h"
#include "pool/copy_batch.h"

namespace hmc::pool {

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

// One end of a run of copies that the processor makes: inside a slot while it lives, or memory of
// this process.
class DirectEnd {
 public:
  DirectEnd(const AddressSpace& addresses, const Members& members, const void* first)
      : addresses_(addresses),
        place_(addresses.find(first)),
        use_(place_ ? members.slot(*place_) : nullptr) {}

  bool has(const void* address, size_t size) const {
    if (!place_) return !addresses_.find(address) && isOnHost(address);
    if (!use_ || !use_->data || !use_->device.isHost()) return false;
    const auto offset = static_cast<uint64_t>(static_cast<const char*>(address) - use_->data);
    return fits(offset, size, use_->size);
  }
  // None for memory of ours.
  const RemoteMapping* peers() const { return use_ ? use_->peers.get() : nullptr; }

 private:
  const AddressSpace& addresses_;
  const std::optional<Place> place_;
  const SlotUse use_;
};

bool copyBetween(const RemoteMapping* to, const RemoteMapping* from,
                 std::span<const PoolCopy> copies, bool much) {
  if (to == from) {
    // Within one slot the two may overlap.
    for (const PoolCopy& copy : copies) moveHost(copy.to, copy.from, copy.size);
    return !to || !to->taken();
  }
  if (!to) return from->copyMapped(OpKind::get, copies, much);
  return to->copyMapped(OpKind::put, copies, much) && (!from || !from->taken());
}

}  // namespace

size_t Copier::copyRun(std::span<const PoolCopy> copies, bool much) const {
  const DirectEnd to(addresses_, members_, copies.front().to);
  const DirectEnd from(addresses_, members_, copies.front().from);
  size_t count = 0;
  size_t bytes = 0;
  for (const PoolCopy& copy : copies) {
    if (copy.size == 0 || !copy.to || !copy.from || copy.size > std::min(kAtOnce, kChunk - bytes) ||
        !to.has(copy.to, copy.size) || !from.has(copy.from, copy.size)) {
      break;
    }
    bytes += copy.size;
    ++count;
  }
  const bool made = count > 0 && copyBetween(to.peers(), from.peers(), copies.first(count), much);
  return made ? count : 0;
}

bool Copier::copyAtOnce(void* to, const void* from, size_t size, Between* between) const {
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
  bool copied = true;
  if (there.peers == here.peers) {
    // Within one slot the two may overlap.
    moveHost(dst, src, size);
  } else if (!there.peers) {
    copied = here.peers->copyMapped(OpKind::get, dst, here.offset, size);
  } else {
    copied = there.peers->copyMapped(OpKind::put, src, there.offset, size);
  }
  const bool taken = (there.peers && there.peers->taken()) || (here.peers && here.peers->taken());
  if (taken && between) between->taken = true;
  return copied && !taken;
}

// As much as the processor does by itself; leaves the rest.
Status Copier::copyDirectly(void*& to, const void*& from, size_t& size, Deadline deadline) const {
  auto* dst = static_cast<char*>(to);
  auto* src = static_cast<const char*>(from);
  const auto target = reinterpret_cast<uintptr_t>(dst);
  const auto source = reinterpret_cast<uintptr_t>(src);
  // Of any size: whether it fits is found out below.
  const bool overlap = (target > source ? target - source : source - target) < size;
  Between between;
  for (bool first = true; size > 0; first = false) {
    const size_t piece = overlap ? size : std::min(size, kChunk);
    if (!copyAtOnce(to, from, piece, &between)) {
      if (first && !between.taken) return Status();
      return stoppedHalfway(to, from, size, deadline);
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
  if (Status member = members_.standing(); !member.ok()) return member;
  const auto target = resolve(to, size, deadline);
  if (!target.ok()) return target.status();
  const auto source = resolve(from, size, deadline);
  if (!source.ok()) return source.status();
  const bool put = target->peers != nullptr;
  const CopyEnd& far = put ? *target : *source;
  const CopyEnd& near = put ? *source : *target;
  if (!far.peers || far.visible || near.peers || !near.own) return std::nullopt;
  Status outcome =
      far.peers->run(put ? OpKind::put : OpKind::get, *near.own, near.offsetOf(put ? from : to),
                     far.offsetOf(put ? to : from), size, deadline.left());
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
  if (!rows.to || !rows.from) {
    return error(Code::invalidArgument, "{} rows of {} bytes: a pointer to them is null",
                 rows.count, rows.width);
  }
  HMC_TRY(checkRows(rows.to, rows.toPitch, rows));
  HMC_TRY(checkRows(rows.from, rows.fromPitch, rows));
  const Deadline deadline(timeout);
  std::vector<PoolCopy> copies;
  for (size_t row = 0; row < rows.count;) {
    copies.clear();
    for (const size_t end = row + std::min(kMostRows, rows.count - row); row < end; ++row) {
      copies.push_back({static_cast<char*>(rows.to) + row * rows.toPitch,
                        static_cast<const char*>(rows.from) + row * rows.fromPitch, rows.width});
    }
    HMC_ASSIGN(const auto state, start(copies, deadline));
    const Status outcome = state->wait(deadline);
    HMC_TRY(state->done() ? outcome : state->cancel());
  }
  return Status();
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

Result<CopyEnd> Copier::resolveSlot(const Place& place, size_t size, Deadline deadline) const {
  Slot* const slot = members_.slot(place);
  for (bool again = false;; again = true) {
    {
      const SlotUse use(slot);
      if (use) {
        if (!fits(place.offset, size, use->size)) return passesTheEnd(place, size, use->size);
        return CopyEnd{addresses_.at(place.space, place.rank),
                       use->size,
                       use->device,
                       use->data != nullptr,
                       use->own,
                       use->peers,
                       place};
      }
    }
    if (again) return error(Code::disconnected, "rank {} left meanwhile", place.rank);
    HMC_TRY(members_.reach(place, deadline));
  }
}

Result<CopyEnd> Copier::resolve(const void* address, size_t size, Deadline deadline) const {
  if (const auto place = addresses_.find(address)) return resolveSlot(*place, size, deadline);
  HMC_ASSIGN(const Device device, deviceOrHost(address));
  auto own = registeredAround(address, size);
  const Region around =
      own ? own->region()
          : Region{const_cast<void*>(address), size, device};  // NOLINT: a source is only read
  return CopyEnd{around.at(0), around.size, device, true, std::move(own), nullptr, {}};
}

Result<std::shared_ptr<PoolCopyState>> Copier::start(const std::vector<PoolCopy>& copies,
                                                     Deadline deadline) {
  HMC_TRY(members_.standing());
  auto state = std::make_shared<PoolCopyState>(copies.size());
  CopyBatch(*this, node_, members_, *state).run(copies, deadline);
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
