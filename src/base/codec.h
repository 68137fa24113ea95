#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/error.h"

namespace hmc {

// Little-endian fields, one after the other. Strings are a u32 length and the bytes.
class Writer {
 public:
  template <class T>
  Writer& number(T value) {
    static_assert(std::is_integral_v<T>);
    for (size_t i = 0; i < sizeof(T); ++i) {
      bytes_.push_back(static_cast<char>(static_cast<std::make_unsigned_t<T>>(value) >> (8 * i)));
    }
    return *this;
  }
  Writer& u8(uint8_t v) { return number(v); }
  Writer& u16(uint16_t v) { return number(v); }
  Writer& u32(uint32_t v) { return number(v); }
  Writer& u64(uint64_t v) { return number(v); }
  Writer& string(std::string_view v) {
    u32(static_cast<uint32_t>(v.size()));
    bytes_.append(v);
    return *this;
  }
  Writer& raw(std::string_view v) {
    bytes_.append(v);
    return *this;
  }
  std::string take() { return std::move(bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Reads what Writer wrote. Reading past the end yields zeros and empty strings and is remembered:
// check once, at the end, with finish().
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  uint8_t u8() { return number<uint8_t>(); }
  uint16_t u16() { return number<uint16_t>(); }
  uint32_t u32() { return number<uint32_t>(); }
  uint64_t u64() { return number<uint64_t>(); }
  std::string string() {
    uint32_t size = u32();
    return std::string(raw(size));
  }
  std::string_view raw(size_t size) {
    if (size > rest_.size()) {
      short_ = true;
      rest_ = {};
      return {};
    }
    auto out = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return out;
  }
  bool failed() const { return short_; }
  size_t left() const { return rest_.size(); }

  // Ok when every field was there and nothing is left; `what` names the message in the sentence.
  Status finish(std::string_view what) const {
    if (short_) return error(Code::invalidArgument, "{} ends before its last field", what);
    if (!rest_.empty()) {
      return error(Code::invalidArgument, "{} has {} bytes after its last field", what,
                   rest_.size());
    }
    return Status();
  }

 private:
  template <class T>
  T number() {
    auto bytes = raw(sizeof(T));
    T value = 0;
    for (size_t i = 0; i < bytes.size(); ++i) {
      value =
          static_cast<T>(value | (static_cast<T>(static_cast<unsigned char>(bytes[i])) << (8 * i)));
    }
    return value;
  }
  std::string_view rest_;
  bool short_ = false;
};

}  // namespace hmc
