#pragma once

#include <cstdint>

#include "base/error.h"

namespace hmc {

// What to say when fits() says no: rangeError("put", 8, "remote ", 4092, 4096).
inline Status rangeError(const char* what, uint64_t size, const char* side, uint64_t offset,
                         uint64_t capacity) {
  return error(Code::outOfRange, "{} of {} bytes at {}offset {} would pass the end of {} bytes",
               what, size, side, offset, capacity);
}

}  // namespace hmc
