#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "control/message.h"
#include "hmc/result.h"

namespace hmc::control {

// Everything on a control connection is a frame: {u32 length, u8 type, u8 detail, u16 flags, u32
// CRC-32C of what follows the header, u32 CRC-32C of the header before} and `length` bytes.
// docs/wire-format.md lists what each type carries. A byte that was changed on the way would
// otherwise be silence: a reader that waits for bytes that never come, an answer to a call that
// nobody made.
enum class FrameType : uint8_t {
  hello = 1,
  challenge = 2,
  ident = 3,
  welcome = 4,
  yield = 5,
  refused = 6,
  message = 16,  // detail is the MessageKind, flags the user's
  call = 17,
  answer = 18,
  ping = 19,
  pong = 20,
  bye = 21,
  taken = 22,
  ringReady = 32,
  ringNo = 33,
  ringSwitch = 34,
  drain = 35,
};

inline constexpr size_t kFrameHeader = 16;
// What a frame may carry beside the user's bytes: a call's number and method.
inline constexpr size_t kLargestFrame = kLargestMessage + 64;
// While the two sides greet each other.
inline constexpr size_t kLargestHandshake = size_t{64} << 10;

using FrameHeaderBytes = std::array<char, kFrameHeader>;

struct Frame {
  FrameType type;
  uint8_t detail;
  uint16_t flags;
  std::string_view payload;
};

// In front of `payload`, and then `more`.
FrameHeaderBytes frameHeader(FrameType type, uint8_t detail, uint16_t flags,
                             std::string_view payload, std::string_view more = {});
// In front of `length` bytes that have this checksum.
FrameHeaderBytes sealedHeader(FrameType type, uint8_t detail, uint16_t flags, uint32_t length,
                              uint32_t sum);
std::string frameBytes(FrameType type, std::string_view payload = {});

// Cuts a byte stream into frames. Holds no more than has arrived: the peer's word about a length
// allocates nothing, and a length beyond the limit is an error before its first byte. So is a
// header that does not fit its checksum; bytes that do not fit theirs are one when all are there.
class FrameReader {
 public:
  explicit FrameReader(size_t limit) : limit_(limit) {}

  void feed(std::string_view bytes);
  // The next whole frame, or nothing yet. Its payload is valid until the next feed().
  Result<std::optional<Frame>> next();
  // The frame that next() answered last comes again.
  void putBack() { used_ -= last_; }
  // After next() found no whole frame: how many bytes the one that has begun still lacks.
  size_t missing() const;
  // True between frames.
  bool empty() const { return used_ == buffer_.size(); }

 private:
  const size_t limit_;
  std::string buffer_;
  size_t used_ = 0;
  size_t last_ = 0;
};

}  // namespace hmc::control
