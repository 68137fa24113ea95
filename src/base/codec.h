#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hmc/status.h"

namespace hmc {

// Little-endian fields, one after the other. Strings are a u32 length and the bytes.
class Writer {
 public:
  Writer& u8(uint8_t v);
  Writer& u16(uint16_t v);
  Writer& u32(uint32_t v);
  Writer& u64(uint64_t v);
  Writer& string(std::string_view v);
  Writer& raw(std::string_view v);
  std::string take() { return std::move(bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  template <class T>
  Writer& number(T value);

  std::string bytes_;
};

// Reads what Writer wrote. Reading past the end yields zeros and empty strings and is remembered:
// check once, at the end, with finish().
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  uint8_t u8();
  uint16_t u16();
  uint32_t u32();
  uint64_t u64();
  std::string string();
  std::string_view raw(size_t size);
  bool failed() const { return short_; }
  size_t left() const { return rest_.size(); }

  // Ok when every field was there and nothing is left; `what` names the message in the sentence.
  Status finish(std::string_view what) const;

 private:
  template <class T>
  T number();

  std::string_view rest_;
  bool short_ = false;
};

}  // namespace hmc
