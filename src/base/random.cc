#include "base/random.h"

#include <fmt/core.h>
#include <sys/random.h>

#include <cstring>

namespace hmc {

std::string randomBytes(size_t count) {
  std::string bytes(count, '\0');
  size_t have = 0;
  while (have < count) {
    ssize_t got = getrandom(bytes.data() + have, count - have, 0);
    if (got > 0) have += static_cast<size_t>(got);
  }
  return bytes;
}

uint64_t randomU64() {
  uint64_t value = 0;
  std::memcpy(&value, randomBytes(sizeof(value)).data(), sizeof(value));
  return value;
}

std::string hex(const std::string& bytes) {
  std::string text;
  for (unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace hmc
