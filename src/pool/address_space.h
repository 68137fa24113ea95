#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "hmc/pool.h"
#include "hmc/result.h"
#include "memory/backend.h"

namespace hmc::pool {

inline constexpr std::array<PoolSpace, 2> kSpaces = {PoolSpace::host, PoolSpace::device};
inline constexpr size_t indexOf(PoolSpace space) {
  return static_cast<size_t>(space);
}
const char* nameOf(PoolSpace space);  // "host"

// Slots begin at multiples of this.
inline constexpr uint64_t kSlotUnit = uint64_t{2} << 20;
inline constexpr uint32_t kMostRanks = 65535;

// Slot r begins at base + r x stride. A stride of 0: there are no such slots.
struct SlotRange {
  uint64_t base = 0;
  uint64_t stride = 0;
  friend bool operator==(const SlotRange&, const SlotRange&) = default;
};

// Where the slots of a pool lie, in every process alike.
struct Layout {
  uint32_t capacity = 0;
  std::array<SlotRange, 2> ranges{};  // by PoolSpace

  uint64_t bytes(PoolSpace space) const { return ranges[indexOf(space)].stride * capacity; }
  std::string encode() const;
  static Result<Layout> decode(std::string_view bytes);
  friend bool operator==(const Layout&, const Layout&) = default;
};

// A byte of a pool.
struct Place {
  PoolSpace space = PoolSpace::host;
  uint32_t rank = 0;
  uint64_t offset = 0;
};

// The addresses of a pool in this process, set aside for its slots.
class AddressSpace {
 public:
  // `device` maps the device slots here: an accelerator's backend, or the host's. alreadyExists
  // when something else lies there.
  static Result<AddressSpace> reserve(const Layout& layout, Backend& device);
  // The same where the bases are open: chooses them.
  static Result<AddressSpace> choose(Layout layout, Backend& device);

  const Layout& layout() const { return layout_; }
  char* at(PoolSpace space, uint32_t rank) const {
    const SlotRange& range = layout_.ranges[indexOf(space)];
    return reinterpret_cast<char*>(range.base + rank * range.stride);  // NOLINT
  }
  // Nothing when the address is not of this pool.
  std::optional<Place> find(const void* address) const {
    for (PoolSpace space : kSpaces) {
      const uint64_t offset =
          reinterpret_cast<uintptr_t>(address) - layout_.ranges[indexOf(space)].base;
      if (offset >= layout_.bytes(space)) continue;
      const uint64_t stride = layout_.ranges[indexOf(space)].stride;
      return Place{space, static_cast<uint32_t>(offset / stride), offset % stride};
    }
    return std::nullopt;
  }

 private:
  AddressSpace(const Layout& layout, std::array<std::unique_ptr<Reservation>, 2> reserved)
      : layout_(layout), reserved_(std::move(reserved)) {}

  Layout layout_;
  std::array<std::unique_ptr<Reservation>, 2> reserved_;  // by PoolSpace; none where no slots are
};

}  // namespace hmc::pool
