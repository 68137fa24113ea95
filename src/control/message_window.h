#pragma once

#include <cstddef>

namespace hmc::control {

// How much a side sends through a socket before the other's user has taken it. Beyond that its
// senders wait, and then fail: the memory of a process whose user does not receive is bounded.
inline constexpr size_t kMessageWindow = size_t{64} << 20;
// The other side tells what was taken (TAKEN) when it is this much.
inline constexpr size_t kTellTaken = kMessageWindow / 8;

// What a message counts for: an empty one takes memory, too.
inline constexpr size_t messageCost(size_t payload) {
  return payload + 64;
}

}  // namespace hmc::control
