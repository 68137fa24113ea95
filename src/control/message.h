#pragma once

#include <cstdint>
#include <string>

namespace hmc {

// What users send each other. Each kind has its own queue at the receiver, in the order sent.
// bulkData and bulkGrant are the two directions of sendDataTo(). `note` comes last: it goes to the
// Node's queue and never through a ring.
enum class MessageKind : uint8_t { tag, integer, structure, bulkData, bulkGrant, note };
inline constexpr size_t kMessageKinds = 6;

// The most bytes in one message or call. A frame that announces more ends its channel.
inline constexpr size_t kLargestMessage = size_t{16} << 20;

struct Message {
  MessageKind kind = MessageKind::note;
  uint16_t flags = 0;
  std::string payload;
};

}  // namespace hmc
