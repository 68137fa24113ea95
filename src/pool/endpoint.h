#pragma once

#include <optional>
#include <string>

#include "hmc/device.h"
#include "hmc/result.h"
#include "pool/address_space.h"

namespace hmc::pool {

// What an address is that a copy begins or ends at.
struct Endpoint {
  const void* address = nullptr;
  std::optional<Place> place;  // in a slot of the pool
  Device device;               // of memory that is in none

  // "0x2000 is in rank 3's device slot", "0x2000 is host memory of this process"
  std::string toString() const;
};

Result<Endpoint> endpointOf(const AddressSpace& addresses, const void* address);

}  // namespace hmc::pool
