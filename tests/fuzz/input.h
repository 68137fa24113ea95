#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

// What the fuzz targets share.
namespace hmc::test {

// Ends the program, which the fuzzer reports with the input that did it.
inline void check(bool so) {
  if (!so) std::abort();
}

// The value of a Result that a target cannot do without.
template <class Made>
auto must(Made made) {
  check(made.ok());
  return *std::move(made);
}

// Takes a fuzzer's bytes one field after the other; when they are used up, zeros.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

  template <class Number>
  Number number() {
    Number value{};
    const std::string_view bytes = take(sizeof(value));
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  std::string_view take(size_t most) {
    const std::string_view taken = rest_.substr(0, most);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

}  // namespace hmc::test
