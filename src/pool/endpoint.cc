#include "pool/endpoint.h"

#include "base/error.h"
#include "memory/device_of.h"

namespace hmc::pool {

std::string Endpoint::toString() const {
  if (place)
    return fmt::format("{} is in rank {}'s {} slot", address, place->rank, nameOf(place->space));
  if (device.isHost()) return fmt::format("{} is host memory of this process", address);
  return fmt::format("{} is memory of {} of this process", address, device.toString());
}

Result<Endpoint> endpointOf(const AddressSpace& addresses, const void* address) {
  Endpoint end;
  end.address = address;
  end.place = addresses.find(address);
  if (!end.place) {
    HMC_ASSIGN(end.device, deviceOrHost(address));
  }
  return end;
}

}  // namespace hmc::pool
