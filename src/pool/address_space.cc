#include "pool/address_space.h"

#include "base/codec.h"
#include "base/error.h"
#include "base/random.h"
#include "memory/backends.h"

namespace hmc::pool {

namespace {

using Reservations = std::array<std::unique_ptr<Reservation>, 2>;

struct Window {
  uint64_t first;
  uint64_t end;
};

// Addresses are chosen in the first of these where they fit. Neither programs, libraries, stacks
// nor allocators lie there, and they have 47 bits. The second is below what the kernel hands out by
// itself, and among the few addresses that a program under the thread sanitizer may have.
constexpr Window kWindows[] = {{uint64_t{0x20} << 40, uint64_t{0x50} << 40},
                               {uint64_t{0x7e80} << 32, uint64_t{0x7ec0} << 32}};
constexpr uint64_t kMostBytes = (kWindows[0].end - kWindows[0].first) / 2;
constexpr uint64_t kStep = uint64_t{1} << 30;
constexpr int kAttempts = 64;

Backend& backendOf(PoolSpace space, Backend& device) {
  return space == PoolSpace::host ? hostBackend() : device;
}

Result<std::unique_ptr<Reservation>> reserveAt(PoolSpace space, uint64_t bytes, uint64_t base,
                                               Backend& device) {
  auto* at = reinterpret_cast<void*>(base);  // NOLINT(performance-no-int-to-ptr)
  auto made = backendOf(space, device).reserve(bytes, at);
  if (made.ok()) return made;
  return made.status().within(fmt::format("the {} slots of the pool", nameOf(space)));
}

Result<std::unique_ptr<Reservation>> reserveSomewhere(PoolSpace space, uint64_t bytes,
                                                      Backend& device) {
  for (const Window& window : kWindows) {
    const uint64_t room = window.end - window.first;
    for (int i = 0; bytes < room && i < kAttempts; ++i) {
      const uint64_t steps = (room - bytes) / kStep + 1;
      auto made = reserveAt(space, bytes, window.first + randomU64() % steps * kStep, device);
      if (made.ok()) return made;
    }
  }
  auto made = backendOf(space, device).reserve(bytes);
  if (made.ok()) return made;
  return made.status().within(fmt::format("the {} slots of the pool", nameOf(space)));
}

}  // namespace

const char* nameOf(PoolSpace space) {
  return space == PoolSpace::host ? "host" : "device";
}

std::string Layout::encode() const {
  Writer out;
  out.u32(capacity);
  for (const SlotRange& range : ranges) out.u64(range.base).u64(range.stride);
  return out.take();
}

Result<Layout> Layout::decode(std::string_view bytes) {
  Reader in(bytes);
  Layout layout;
  layout.capacity = in.u32();
  for (SlotRange& range : layout.ranges) range = {in.u64(), in.u64()};
  HMC_TRY(in.finish("the layout of a pool"));
  bool sound = layout.capacity > 0 && layout.capacity <= kMostRanks;
  for (const SlotRange& range : layout.ranges) {
    constexpr uint64_t kUserSpace = uint64_t{1} << 47;
    sound = sound && range.base % kSlotUnit == 0 && range.stride % kSlotUnit == 0 &&
            range.base < kUserSpace && range.stride <= (kUserSpace - range.base) / layout.capacity;
  }
  if (!sound) return error(Code::failed, "the store has a layout of a pool that cannot be");
  return layout;
}

Result<AddressSpace> AddressSpace::reserve(const Layout& layout, Backend& device) {
  Reservations reserved;
  // The device first: a driver does not reserve inside what the kernel has handed out.
  for (PoolSpace space : {PoolSpace::device, PoolSpace::host}) {
    if (layout.bytes(space) == 0) continue;
    HMC_ASSIGN(reserved[indexOf(space)],
               reserveAt(space, layout.bytes(space), layout.ranges[indexOf(space)].base, device));
  }
  return AddressSpace(layout, std::move(reserved));
}

Result<AddressSpace> AddressSpace::choose(Layout layout, Backend& device) {
  Reservations reserved;
  for (PoolSpace space : {PoolSpace::device, PoolSpace::host}) {
    const uint64_t bytes = layout.bytes(space);
    if (bytes == 0) continue;
    if (bytes > kMostBytes) {
      return error(Code::exhausted,
                   "{} {} slots of {} bytes need more addresses than the {} bytes that a pool may "
                   "have: lower the capacity or the stride",
                   layout.capacity, nameOf(space), layout.ranges[indexOf(space)].stride,
                   kMostBytes);
    }
    HMC_ASSIGN(auto made, reserveSomewhere(space, bytes, device));
    layout.ranges[indexOf(space)].base = reinterpret_cast<uintptr_t>(made->region.ptr);
    reserved[indexOf(space)] = std::move(made);
  }
  return AddressSpace(layout, std::move(reserved));
}

}  // namespace hmc::pool
