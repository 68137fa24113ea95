#include "base/text.h"

#include <cstdint>

namespace hmc {

namespace {

// How many bytes the character at the beginning has; 0 when it is none.
size_t characterSize(std::string_view words) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(words[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return first >= ' ' && first != 0x7f ? 1 : 0;
  const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || words.size() < size) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Longer than need be, half of a pair, or beyond the last character.
  if (first == 0xe0 && byte(1) < 0xa0) return 0;
  if (first == 0xed && byte(1) > 0x9f) return 0;
  if (first == 0xf0 && byte(1) < 0x90) return 0;
  if (first == 0xf4 && byte(1) > 0x8f) return 0;
  return size;
}

}  // namespace

std::string printable(std::string_view words) {
  std::string text;
  text.reserve(words.size());
  while (!words.empty()) {
    const size_t size = characterSize(words);
    if (size == 0) {
      text += '?';
    } else {
      text += words.substr(0, size);
    }
    words.remove_prefix(size == 0 ? 1 : size);
  }
  return text;
}

}  // namespace hmc
