#pragma once

#include <endian.h>

#include <cstdint>
#include <cstring>

// What travels over a stream. All fields are little-endian.
//
// The dialling side opens each stream with a Greeting (address.h). From then on the origin sends
// Requests, a put's followed by its bytes; the target answers every one with a Reply: `done`, or
// `refused` followed by the sentence. Before a get's answer comes `data` and the bytes. Answers
// come in the order of the requests of that stream. Where both ends check (Greeting::checked),
// every header ends in its checksum, and after the bytes that follow one comes theirs.
// docs/wire-format.md has the layout.
namespace hmc::tcp {

// A target ends the stream of a peer that asks for more in one put or get. How much of that an
// origin asks for is its own affair (TcpOptions::piece).
inline constexpr size_t kLargestRequest = size_t{64} << 20;
inline constexpr size_t kLongestSentence = 400;

// Of a request and of a reply; what they do not use is 0. The kernel copies the bytes of a put or
// a get behind one into its own pages. A Zen 3 does that at half the speed where these bytes begin
// 1 to 31 bytes further into a page than they do in the caller's memory: with 64 bytes neither
// memory from malloc (16 bytes into a page) nor whole pages do.
inline constexpr size_t kHeaderSize = 64;

// Behind a put's or a get's bytes, or a sentence: their CRC-32C, and then 0. As long as a header,
// for the same reason.
inline constexpr size_t kTrailerSize = kHeaderSize;
// A put up to this size is checked before any of it reaches the memory.
inline constexpr size_t kCheckedFirst = 4096;

inline void packTrailer(uint32_t crc, char* out) {
  crc = htole32(crc);
  std::memset(out, 0, kTrailerSize);
  std::memcpy(out, &crc, sizeof(crc));
}
inline uint32_t unpackTrailer(const char* in) {
  uint32_t crc = 0;
  std::memcpy(&crc, in, sizeof(crc));
  return le32toh(crc);
}

// The last four bytes of a header: the CRC-32C of those before.
void seal(char* header);
bool isSealed(const char* header);

enum class RequestKind : uint64_t { put = 0x7570, get = 0x7467 };

struct Request {
  static constexpr size_t kSize = kHeaderSize;
  uint64_t kind = 0;
  uint64_t id = 0;
  uint64_t region = 0;
  uint64_t offset = 0;
  uint64_t size = 0;

  void pack(char* out) const {
    const uint64_t words[kSize / sizeof(uint64_t)] = {htole64(kind), htole64(id), htole64(region),
                                                      htole64(offset), htole64(size)};
    std::memcpy(out, words, sizeof(words));
  }
  static Request unpack(const char* in) {
    uint64_t words[5];
    std::memcpy(words, in, sizeof(words));
    return {le64toh(words[0]), le64toh(words[1]), le64toh(words[2]), le64toh(words[3]),
            le64toh(words[4])};
  }
};

enum class ReplyKind : uint32_t {
  done = 0x656e6f64,
  data = 0x61746164,
  refused = 0x6f6e,
  altered = 0x6d6d6568,  // a request's header did not fit its checksum; the stream ends
};

struct Reply {
  static constexpr size_t kSize = kHeaderSize;
  uint32_t kind = 0;
  uint32_t code = 0;  // of a refusal
  uint64_t id = 0;
  uint64_t size = 0;  // bytes that follow

  void pack(char* out) const {
    const uint32_t halves[] = {htole32(kind), htole32(code)};
    const uint64_t words[kSize / sizeof(uint64_t) - 1] = {htole64(id), htole64(size)};
    std::memcpy(out, halves, sizeof(halves));
    std::memcpy(out + sizeof(halves), words, sizeof(words));
  }
  static Reply unpack(const char* in) {
    uint32_t halves[2];
    uint64_t words[2];
    std::memcpy(halves, in, sizeof(halves));
    std::memcpy(words, in + sizeof(halves), sizeof(words));
    return {le32toh(halves[0]), le32toh(halves[1]), le64toh(words[0]), le64toh(words[1])};
  }
};

}  // namespace hmc::tcp
