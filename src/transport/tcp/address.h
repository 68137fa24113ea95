#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hmc/result.h"

namespace hmc::tcp {

// What one Link tells the other. The side that waits to be dialled says where, and the token that a
// connection must present; the side that dials has nothing to say but that.
struct Address {
  std::string host;
  uint16_t port = 0;  // 0: this side dials
  std::string token;

  bool dials() const { return port == 0; }
  std::string encode() const;
  static Result<Address> decode(std::string_view bytes);
};

// What a Registration tells a Link.
struct Key {
  uint64_t region = 0;
  uint64_t size = 0;
  bool writable = false;

  std::string encode() const;
  static Result<Key> decode(std::string_view bytes);
};

}  // namespace hmc::tcp
