#pragma once

#include <optional>
#include <string>

#include "node/peer_state.h"

// What the two sides of sendDataTo() and recvDataFrom() tell each other.
namespace hmc {

// Each half of a buffer is that many slots: the lower half receives, the upper half sends, so that
// both directions can run at once.
inline constexpr size_t kBulkSlots = 8;

inline constexpr MessageKind kBulkChunk = MessageKind::custom1;
inline constexpr MessageKind kBulkGrant = MessageKind::custom2;

// From a receiver to a sender. Every recvDataFrom() draws a number, and both sides drop what
// carries another one: a call that failed or gave up leaves messages behind.
struct BulkGrant {
  enum class Word : uint8_t { ready, taken, refused };
  Word word{};
  uint64_t number = 0;
  uint64_t slot = 0;     // of `ready`: the bytes in each of the receiver's slots
  uint64_t slots = 0;    // of `ready`: how many it has
  std::string sentence;  // of `refused`
};

// From a sender: so many bytes are in the next slot.
struct BulkChunk {
  uint64_t number = 0;
  uint64_t size = 0;
  bool last = false;
};

Status sendGrant(PeerState& peer, const BulkGrant& grant, Deadline deadline);
// The next word about that number, or the `ready` of a newer receiver; none when it was about
// something else. `refused` is an error.
Result<std::optional<BulkGrant>> receiveGrant(PeerState& peer, uint64_t number, Deadline deadline);

Status sendChunk(PeerState& peer, const BulkChunk& chunk, Deadline deadline);
// The next chunk if it is one of that number; it fits into a slot.
Result<std::optional<BulkChunk>> receiveChunk(PeerState& peer, uint64_t number, size_t slot,
                                              Deadline deadline);

}  // namespace hmc
