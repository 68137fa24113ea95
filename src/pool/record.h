#pragma once

#include <array>
#include <string>
#include <string_view>

#include "hmc/device.h"
#include "hmc/result.h"

namespace hmc::pool {

// What a member tells the others of itself, through the store.
struct Record {
  std::string address;                  // of its Node's listener
  std::string node;                     // its Node's id
  std::string host;                     // hostId()
  std::string layout;                   // the encoded Layout that it uses
  std::array<uint64_t, 2> sizes{};      // what it brings, by PoolSpace
  DeviceKind device = DeviceKind::cpu;  // where the device slot lies

  std::string encode() const;
  static Result<Record> decode(std::string_view bytes);
};

}  // namespace hmc::pool
