#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "hmc/device.h"

namespace hmc {

// A borrowed view of memory: who owns it is said elsewhere.
struct Region {
  void* ptr = nullptr;
  size_t size = 0;
  Device device;

  char* at(size_t offset) const { return static_cast<char*>(ptr) + offset; }
  Region slice(size_t offset, size_t length) const { return {at(offset), length, device}; }
};

// offset + size <= capacity, without the overflow.
inline bool fits(uint64_t offset, uint64_t size, uint64_t capacity) {
  return offset <= capacity && size <= capacity - offset;
}

// In a map of what has a `size` by its first byte: the one around ptr, or the end.
template <class Map>
auto findAround(Map& map, const void* ptr) {
  auto* byte = static_cast<const char*>(ptr);
  auto next = map.upper_bound(byte);
  if (next == map.begin()) return map.end();
  auto found = std::prev(next);
  return byte < found->first + found->second.size ? found : map.end();
}

}  // namespace hmc
