#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace hmc
