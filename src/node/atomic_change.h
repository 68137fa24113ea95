#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hmc/access.h"
#include "hmc/device.h"
#include "hmc/result.h"

namespace hmc {

struct Region;

// One change of eight bytes of a region, which happens at once: decision 020.
struct AtomicChange {
  enum class Kind : uint8_t { add = 0, compareSwap = 1 };
  static constexpr uint64_t kSize = 8;

  Kind kind = Kind::add;
  uint64_t offset = 0;
  uint64_t operand = 0;   // what is added, or stored
  uint64_t expected = 0;  // what has to be there for it to be stored

  const char* name() const;  // "fetch-add", "compare-swap"
  // May a peer do this to memory of that size and access, on that device?
  Status check(Device device, uint64_t size, Access access) const;
  // Changes memory of the host and answers what was there before. After check(); refused where
  // the eight bytes do not begin at a multiple of eight.
  Result<uint64_t> apply(char* memory) const;
};

// What one Node asks another (Channel::call); the answer is what was there before.
inline constexpr uint16_t kChangeAtomically = 18;

struct AtomicRequest {
  std::string region;
  uint64_t number = 0;  // ExportedMemory::number()
  AtomicChange change;

  std::string encode() const;
  static Result<AtomicRequest> decode(std::string_view bytes);
  // Does it to that memory of ours, where it may have been unmapped or protected by now.
  Result<std::string> serve(const Region& memory, Access access) const;
  static Result<uint64_t> decodeAnswer(std::string_view bytes);
};

}  // namespace hmc
