#include "transport/tcp/wire.h"

#include "base/crc32c.h"

namespace hmc::tcp {

namespace {
constexpr size_t kSealed = kHeaderSize - sizeof(uint32_t);
}

void seal(char* header) {
  const uint32_t crc = htole32(crc32c(0, header, kSealed));
  std::memcpy(header + kSealed, &crc, sizeof(crc));
}

bool isSealed(const char* header) {
  const uint32_t crc = htole32(crc32c(0, header, kSealed));
  return std::memcmp(header + kSealed, &crc, sizeof(crc)) == 0;
}

}  // namespace hmc::tcp
