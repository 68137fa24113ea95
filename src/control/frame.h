#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "control/message.h"
#include "hmc/result.h"

namespace hmc::control {

// Everything on a control connection is a frame: {u32 length, u8 type, u8 detail, u16 flags} and
// `length` bytes. docs/wire-format.md lists what each type carries.
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

inline constexpr size_t kFrameHeader = 8;
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

FrameHeaderBytes frameHeader(FrameType type, uint8_t detail, uint16_t flags, size_t length);
std::string frameBytes(FrameType type, std::string_view payload = {});

// Cuts a byte stream into frames. Holds no more than has arrived: the peer's word about a length
// allocates nothing, and a length beyond the limit is an error before its first byte.
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
