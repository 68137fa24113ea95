#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

namespace hmc::test {

// Bytes that depend on their position, so that a misplaced one shows: `size` of them, from the
// `from`th on. Made eight at a time: under a sanitizer every access counts.
inline std::string pattern(size_t size, uint64_t seed = 0, uint64_t from = 0) {
  std::string bytes(size, '\0');
  for (size_t done = 0; done < size;) {
    uint64_t word = (seed + 1) * 0x9e3779b97f4a7c15u + (from + done) / sizeof(word);
    word = (word ^ word >> 29) * 0xbf58476d1ce4e5b9u;
    word ^= word >> 32;
    const size_t skipped = (from + done) % sizeof(word);
    const size_t some = std::min(sizeof(word) - skipped, size - done);
    std::memcpy(bytes.data() + done, reinterpret_cast<const char*>(&word) + skipped, some);
    done += some;
  }
  return bytes;
}

}  // namespace hmc::test
