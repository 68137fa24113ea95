#include "base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#define HMC_CRC_TARGET __attribute__((target("sse4.2")))
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>
#define HMC_CRC_TARGET __attribute__((target("+crc")))
#endif

namespace hmc {

namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // reflected
using Table = std::array<uint32_t, 256>;

// By software: eight bytes at a time, one table for each.
constexpr std::array<Table, 8> makeByteTables() {
  std::array<Table, 8> tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? (crc >> 1) ^ kPolynomial : crc >> 1;
    tables[0][byte] = crc;
  }
  for (uint32_t byte = 0; byte < 256; ++byte) {
    for (size_t i = 1; i < tables.size(); ++i)
      tables[i][byte] = (tables[i - 1][byte] >> 8) ^ tables[0][tables[i - 1][byte] & 0xff];
  }
  return tables;
}
constexpr std::array<Table, 8> kByteTables = makeByteTables();

uint64_t wordAt(const char* at) {
  uint64_t word = 0;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

#if defined(HMC_CRC_TARGET)

// The instruction takes 8 bytes and answers three cycles later, but one can start in every cycle:
// so three thirds of a block are summed side by side and put together at its end.
constexpr size_t kLong = 4096;
constexpr size_t kShort = 256;

// a * b modulo the polynomial, bit 31 being the lowest power, as in a reflected CRC.
constexpr uint32_t multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = uint32_t{1} << 31; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) product ^= b;
    b = (b & 1) != 0 ? (b >> 1) ^ kPolynomial : b >> 1;
  }
  return product;
}

// What a CRC becomes when that many bytes of 0 follow, as four tables, one for each of its bytes.
constexpr std::array<Table, 4> makeShift(size_t bytes) {
  uint32_t factor = uint32_t{1} << 31;        // 1
  uint32_t square = uint32_t{1} << (31 - 8);  // x^8: one byte
  for (size_t left = bytes; left != 0; left >>= 1) {
    if ((left & 1) != 0) factor = multiply(factor, square);
    square = multiply(square, square);
  }
  std::array<uint32_t, 32> ofBit{};
  for (size_t bit = 0; bit < 32; ++bit) ofBit[bit] = multiply(uint32_t{1} << bit, factor);
  std::array<Table, 4> tables{};
  for (size_t byte = 0; byte < 4; ++byte) {
    for (uint32_t value = 0; value < 256; ++value) {
      uint32_t sum = 0;
      for (size_t bit = 0; bit < 8; ++bit) {
        if ((value >> bit & 1) != 0) sum ^= ofBit[8 * byte + bit];
      }
      tables[byte][value] = sum;
    }
  }
  return tables;
}
constexpr std::array<Table, 4> kAfterLong = makeShift(kLong);
constexpr std::array<Table, 4> kAfterShort = makeShift(kShort);

uint32_t shifted(const std::array<Table, 4>& by, uint64_t crc) {
  return by[0][crc & 0xff] ^ by[1][crc >> 8 & 0xff] ^ by[2][crc >> 16 & 0xff] ^
         by[3][crc >> 24 & 0xff];
}

#if defined(__x86_64__)
HMC_CRC_TARGET inline uint64_t step(uint64_t crc, const char* at) {
  return _mm_crc32_u64(crc, wordAt(at));
}
HMC_CRC_TARGET inline uint64_t stepByte(uint64_t crc, char byte) {
  return _mm_crc32_u8(static_cast<uint32_t>(crc), static_cast<unsigned char>(byte));
}
bool hasInstruction() {
  return __builtin_cpu_supports("sse4.2") != 0;
}
constexpr const char* kInstruction = "sse4.2";
#else
HMC_CRC_TARGET inline uint64_t step(uint64_t crc, const char* at) {
  return __crc32cd(static_cast<uint32_t>(crc), wordAt(at));
}
HMC_CRC_TARGET inline uint64_t stepByte(uint64_t crc, char byte) {
  return __crc32cb(static_cast<uint32_t>(crc), static_cast<unsigned char>(byte));
}
bool hasInstruction() {
  constexpr unsigned long kCrc32 = 1 << 7;  // HWCAP_CRC32
  return (getauxval(AT_HWCAP) & kCrc32) != 0;
}
constexpr const char* kInstruction = "armv8";
#endif

// Three parts of `third` bytes each.
HMC_CRC_TARGET uint64_t threeAtOnce(uint64_t crc, const char* at, size_t third,
                                    const std::array<Table, 4>& after) {
  uint64_t second = 0;
  uint64_t last = 0;
  for (const char* const end = at + third; at < end; at += sizeof(uint64_t)) {
    crc = step(crc, at);
    second = step(second, at + third);
    last = step(last, at + 2 * third);
  }
  return shifted(after, shifted(after, crc) ^ second) ^ last;
}

HMC_CRC_TARGET uint32_t byInstruction(uint32_t before, const char* at, size_t size) {
  uint64_t crc = before ^ 0xffffffff;
  for (; size >= 3 * kLong; at += 3 * kLong, size -= 3 * kLong)
    crc = threeAtOnce(crc, at, kLong, kAfterLong);
  for (; size >= 3 * kShort; at += 3 * kShort, size -= 3 * kShort)
    crc = threeAtOnce(crc, at, kShort, kAfterShort);
  for (; size >= sizeof(uint64_t); at += sizeof(uint64_t), size -= sizeof(uint64_t))
    crc = step(crc, at);
  for (; size > 0; ++at, --size) crc = stepByte(crc, *at);
  return static_cast<uint32_t>(crc) ^ 0xffffffff;
}

const bool kHasInstruction = hasInstruction();

#else
constexpr bool kHasInstruction = false;
constexpr const char* kInstruction = "";
uint32_t byInstruction(uint32_t before, const char* at, size_t size) {
  return crc32cBySoftware(before, at, size);
}
#endif

}  // namespace

uint32_t crc32cBySoftware(uint32_t before, const void* bytes, size_t size) {
  const auto& tables = kByteTables;
  const char* at = static_cast<const char*>(bytes);
  uint32_t crc = before ^ 0xffffffff;
  for (; size >= 8; at += 8, size -= 8) {
    const uint64_t word = wordAt(at) ^ crc;
    crc = 0;
    for (size_t i = 0; i < 8; ++i) crc ^= tables[7 - i][word >> 8 * i & 0xff];
  }
  for (; size > 0; ++at, --size)
    crc = (crc >> 8) ^ tables[0][(crc ^ static_cast<unsigned char>(*at)) & 0xff];
  return crc ^ 0xffffffff;
}

uint32_t crc32c(uint32_t before, const void* bytes, size_t size) {
  return kHasInstruction ? byInstruction(before, static_cast<const char*>(bytes), size)
                         : crc32cBySoftware(before, bytes, size);
}

const char* crc32cBy() {
  return kHasInstruction ? kInstruction : "software";
}

}  // namespace hmc
