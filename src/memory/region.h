#pragma once

#include <cstddef>
#include <cstdint>

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

}  // namespace hmc
