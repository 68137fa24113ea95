#pragma once

#include <endian.h>

#include <cstdint>
#include <cstring>

// The messages that carry an operation. All fields are little-endian. The first request is a hello,
// which is answered. A request goes to the target's worker, a put with its bytes. The reply comes
// back over the same connection: to a get with the bytes, a refusal with its error message.
namespace hmc::ucx {

inline constexpr unsigned kRequestMessage = 1;  // UCX's numbers of active messages
inline constexpr unsigned kReplyMessage = 2;
// Most bytes in one operation. The target receives such a message whole before it copies it, and it
// should stay in the cache meanwhile. With its headers it fills five packets of the loopback device
// (65,483 bytes each): a small sixth one would cost a third of the bandwidth.
inline constexpr size_t kLargest = size_t{316} << 10;
inline constexpr size_t kLongestError = 400;

inline constexpr uint64_t kHelloId = ~uint64_t{0};

enum class RequestKind : uint64_t { put = 0x7570, get = 0x7467, hello = 0x6968 };

struct Request {
  static constexpr size_t kSize = 40;
  uint64_t kind = 0;
  uint64_t id = 0;
  uint64_t region = 0;  // number in Exports
  uint64_t offset = 0;
  uint64_t size = 0;

  void pack(char* out) const {
    const uint64_t fields[] = {htole64(kind), htole64(id), htole64(region), htole64(offset),
                               htole64(size)};
    std::memcpy(out, fields, sizeof(fields));
  }
  static Request unpack(const void* in) {
    uint64_t fields[5];
    std::memcpy(fields, in, sizeof(fields));
    return {le64toh(fields[0]), le64toh(fields[1]), le64toh(fields[2]), le64toh(fields[3]),
            le64toh(fields[4])};
  }
};

struct Reply {
  static constexpr size_t kSize = 16;
  uint64_t id = 0;
  uint64_t code = 0;  // 0: done

  void pack(char* out) const {
    const uint64_t fields[] = {htole64(id), htole64(code)};
    std::memcpy(out, fields, sizeof(fields));
  }
  static Reply unpack(const void* in) {
    uint64_t fields[2];
    std::memcpy(fields, in, sizeof(fields));
    return {le64toh(fields[0]), le64toh(fields[1])};
  }
};

}  // namespace hmc::ucx
