#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hmc/access.h"
#include "hmc/device.h"
#include "hmc/result.h"

namespace hmc {

// What the owner of a region tells a peer that opens it.
struct RegionDescription {
  struct Offer {
    std::string transport;
    std::string key;
    Status why;  // there is no key
  };
  uint64_t size = 0;
  Device device;
  Access access = Access::read;
  uint64_t number = 0;        // ExportedMemory::number()
  std::vector<Offer> offers;  // for the transports that the peer asked about

  std::string encode() const;
  static Result<RegionDescription> decode(std::string_view bytes);
};

}  // namespace hmc
