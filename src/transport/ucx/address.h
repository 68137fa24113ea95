#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hmc/access.h"
#include "hmc/result.h"

namespace hmc::ucx {

// UCX believes the bytes of its addresses and keys and crashes on damaged ones, so ours carry a
// checksum over all of them.

// What one Link tells the other.
struct Address {
  uint64_t link = 0;    // what our service calls this link; unguessable
  std::string target;   // of the worker that serves the peer's operations
  std::string words;    // of the worker that hears what the peer's service says
  std::string version;  // of our UCX, for sentences

  std::string encode() const;
  static Result<Address> decode(std::string_view bytes);
};

// What a Registration tells a Link.
struct Key {
  uint64_t area = 0;     // for messages
  uint64_t address = 0;  // for hardware
  uint64_t size = 0;
  Access access = Access::read;
  std::string hardware;   // UCX's own key; empty where hardware must not or cannot reach the memory
  std::string hindrance;  // why it cannot, with the fix

  std::string encode() const;
  static Result<Key> decode(std::string_view bytes);
};

}  // namespace hmc::ucx
