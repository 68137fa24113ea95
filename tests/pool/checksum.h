#pragma once

#include <cstdint>
#include <string_view>

namespace hmc::test {

// Of what a slot holds: FNV-1a, eight bytes at a time where there are as many.
inline uint64_t checksum(std::string_view bytes) {
  uint64_t sum = 14695981039346656037u;
  const auto add = [&](uint64_t word) { sum = (sum ^ word) * 1099511628211u; };
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    uint64_t word = 0;
    __builtin_memcpy(&word, bytes.data() + i, sizeof(word));
    add(word);
    sum ^= sum >> 29;
  }
  for (; i < bytes.size(); ++i) add(static_cast<unsigned char>(bytes[i]));
  return sum;
}

}  // namespace hmc::test
