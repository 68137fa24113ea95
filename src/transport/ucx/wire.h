#pragma once

#include <endian.h>

#include <cstdint>
#include <cstring>

// The messages that carry an operation. All fields are little-endian. The first is a hello, which
// is answered. A request goes to the target's worker, a put's with its bytes; the reply comes back
// over the same connection, a get's with the bytes, a refusal with its sentence.
namespace hmc::ucx {

inline constexpr unsigned kRequestMessage = 1;  // UCX's numbers of active messages
inline constexpr unsigned kReplyMessage = 2;
// Most bytes in one operation. Such a message lies in one piece at the target before it is put in
// place, and should stay in the cache meanwhile. With its headers it fills five packets of the
// loopback device (65,483 bytes each) and leaves nothing for a sixth: a small packet at the end of
// every message takes a third of the bandwidth.
inline constexpr size_t kLargest = size_t{316} << 10;
inline constexpr size_t kLongestSentence = 400;

inline constexpr uint64_t kHelloId = ~uint64_t{0};

enum class RequestKind : uint64_t { put = 0x7570, get = 0x7467, hello = 0x6968 };

struct Request {
  static constexpr size_t kSize = 40;
  uint64_t kind = 0;
  uint64_t id = 0;
  uint64_t area = 0;
  uint64_t offset = 0;
  uint64_t size = 0;

  void pack(char* out) const {
    const uint64_t words[] = {htole64(kind), htole64(id), htole64(area), htole64(offset),
                              htole64(size)};
    std::memcpy(out, words, sizeof(words));
  }
  static Request unpack(const void* in) {
    uint64_t words[5];
    std::memcpy(words, in, sizeof(words));
    return {le64toh(words[0]), le64toh(words[1]), le64toh(words[2]), le64toh(words[3]),
            le64toh(words[4])};
  }
};

struct Reply {
  static constexpr size_t kSize = 16;
  uint64_t id = 0;
  uint64_t code = 0;  // 0: done

  void pack(char* out) const {
    const uint64_t words[] = {htole64(id), htole64(code)};
    std::memcpy(out, words, sizeof(words));
  }
  static Reply unpack(const void* in) {
    uint64_t words[2];
    std::memcpy(words, in, sizeof(words));
    return {le64toh(words[0]), le64toh(words[1])};
  }
};

}  // namespace hmc::ucx
