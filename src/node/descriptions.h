#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hmc/access.h"
#include "hmc/device.h"
#include "hmc/result.h"
#include "transport/select.h"

namespace hmc {

// What a Node tells a peer about itself in the handshake.
struct Attributes {
  struct Listener {
    std::string label;  // what the listener is for: "RDMA", "UCX", "control", ...
    uint16_t port = 0;
  };
  std::vector<TransportOffer> transports;
  std::optional<uint32_t> rank;  // what the peer shall call us
  std::vector<Listener> listeners;

  std::string encode() const;
  static Result<Attributes> decode(std::string_view bytes);
};

// A kind of device that a peer names.
Result<DeviceKind> kindFromName(const std::string& name);

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
