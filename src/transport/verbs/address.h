#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hmc/result.h"
#include "transport/verbs/gid.h"

namespace hmc::verbs {

// A port, as a peer needs to know it.
struct PortAddress {
  GidBytes gid{};
  uint16_t lid = 0;
  uint8_t mtu = 0;        // an ibv_mtu
  uint8_t readDepth = 0;  // gets that it serves at a time, per queue pair
  bool ethernet = false;
};

struct QpAddress {
  uint8_t port = 0;  // index into Address::ports
  uint32_t number = 0;
  uint32_t psn = 0;  // of the first packet that it sends
};

// What one side of a link tells the other: where its queue pairs are.
struct Address {
  std::vector<PortAddress> ports;
  QpAddress control;
  std::vector<QpAddress> outgoing;  // that send our operations
  std::vector<QpAddress> incoming;  // that serve the peer's

  std::string encode() const;
  static Result<Address> decode(std::string_view bytes);
};

}  // namespace hmc::verbs
