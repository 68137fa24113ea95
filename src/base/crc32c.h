#pragma once

#include <cstddef>
#include <cstdint>

namespace hmc {

// CRC-32C (Castagnoli), continued from `before`: that of "ab" is crc32c(crc32c(0, "a"), "b"). By
// the processor's own instruction where it has one.
uint32_t crc32c(uint32_t before, const void* bytes, size_t size);

// The same without that instruction, for processors that lack it, and for tests.
uint32_t crc32cBySoftware(uint32_t before, const void* bytes, size_t size);

// "sse4.2", "armv8" or "software"
const char* crc32cBy();

}  // namespace hmc
