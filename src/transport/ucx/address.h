#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hmc/access.h"
#include "hmc/result.h"

namespace hmc::ucx {

// UCX does not check its addresses and keys and crashes on damaged ones, so ours carry a checksum
// over all bytes.

// What one Link tells the other.
struct Address {
  uint64_t link = 0;    // our service's number of this link; unguessable
  std::string target;   // address of the worker that serves the peer's operations
  std::string control;  // address of the worker for control messages
  std::string version;  // of our UCX, for error messages

  std::string encode() const;
  static Result<Address> decode(std::string_view bytes);
};

// What a Registration tells a Link.
struct Key {
  uint64_t region = 0;   // for messages
  uint64_t address = 0;  // for hardware
  uint64_t size = 0;
  Access access = Access::read;
  std::string hardware;   // UCX's own key; empty where hardware must not or cannot reach the memory
  std::string hindrance;  // why it cannot, with the fix

  std::string encode() const;
  static Result<Key> decode(std::string_view bytes);
};

}  // namespace hmc::ucx
