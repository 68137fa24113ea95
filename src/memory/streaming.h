#pragma once

#include <cstddef>
#include <vector>

namespace hmc {

// Copies with non-temporal stores, one loop per width that this processor has.
struct StreamingLoop {
  const char* name;
  // Takes a 64-byte-aligned destination and whole groups; the fence is left to the caller.
  void (*copy)(char* dst, const char* src, size_t groups);
};

inline constexpr size_t kStreamingGroup = size_t{16} << 10;

// Widest first; empty on processors that have none.
std::vector<StreamingLoop> streamingLoops();

}  // namespace hmc
