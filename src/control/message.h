#pragma once

#include <cstdint>
#include <string>

namespace hmc {

// What users send each other. Each kind has its own queue at the receiver, in the order sent.
enum class MessageKind : uint8_t { tag, integer, structure, note };
inline constexpr size_t kMessageKinds = 4;

// The most bytes in one message or call. A frame that announces more ends its channel.
inline constexpr size_t kLargestMessage = size_t{16} << 20;

struct Message {
  MessageKind kind = MessageKind::note;
  uint16_t flags = 0;
  std::string payload;
};

}  // namespace hmc
