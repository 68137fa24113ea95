#pragma once

#include <string>

namespace hmc::test {

// Bytes that depend on their position, so that a misplaced one shows.
inline std::string pattern(size_t size, size_t seed = 0) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>((i * 31 + i / 251 + seed) % 253);
  return bytes;
}

}  // namespace hmc::test
