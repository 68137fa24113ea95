#include "base/codec.h"

#include <bit>
#include <cstring>

#include "base/error.h"

namespace hmc {
namespace {
// To little-endian, and back.
template <class T>
T littleEndian(T value) {
  if constexpr (std::endian::native == std::endian::big) {
    if constexpr (sizeof(T) == 2) return __builtin_bswap16(value);
    if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
    if constexpr (sizeof(T) == 8) return __builtin_bswap64(value);
  }
  return value;
}
}  // namespace

template <class T>
Writer& Writer::number(T value) {
  const T little = littleEndian(value);
  bytes_.append(reinterpret_cast<const char*>(&little), sizeof(little));
  return *this;
}

Writer& Writer::u8(uint8_t v) {
  return number(v);
}

Writer& Writer::u16(uint16_t v) {
  return number(v);
}

Writer& Writer::u32(uint32_t v) {
  return number(v);
}

Writer& Writer::u64(uint64_t v) {
  return number(v);
}

Writer& Writer::string(std::string_view v) {
  u32(static_cast<uint32_t>(v.size()));
  return raw(v);
}

Writer& Writer::raw(std::string_view v) {
  bytes_.append(v);
  return *this;
}

template <class T>
T Reader::number() {
  T little = 0;
  const auto bytes = raw(sizeof(T));
  if (!bytes.empty()) std::memcpy(&little, bytes.data(), sizeof(T));
  return littleEndian(little);
}

uint8_t Reader::u8() {
  return number<uint8_t>();
}

uint16_t Reader::u16() {
  return number<uint16_t>();
}

uint32_t Reader::u32() {
  return number<uint32_t>();
}

uint64_t Reader::u64() {
  return number<uint64_t>();
}

std::string Reader::string() {
  return std::string(raw(u32()));
}

std::string_view Reader::raw(size_t size) {
  if (size > rest_.size()) {
    short_ = true;
    rest_ = {};
    return {};
  }
  const auto out = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return out;
}

Status Reader::finish(std::string_view what) const {
  if (short_) return error(Code::invalidArgument, "{} ends before its last field", what);
  if (rest_.empty()) return Status();
  return error(Code::invalidArgument, "{} has {} bytes after its last field", what, rest_.size());
}

}  // namespace hmc
