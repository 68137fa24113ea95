#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hmc/result.h"
#include "transport/verbs/gid.h"

namespace hmc::verbs {

// What one side of a link tells the other: where its queue pairs are.
struct Address {
  // A port, as a peer needs to know it.
  struct Place {
    GidBytes gid{};
    uint16_t lid = 0;
    uint8_t mtu = 0;        // an ibv_mtu
    uint8_t readDepth = 0;  // gets that it serves at a time, per queue pair
    bool ethernet = false;
  };
  struct Pair {
    uint8_t place = 0;  // index into places
    uint32_t number = 0;
    uint32_t firstPacket = 0;  // PSN of what it sends
  };

  std::vector<Place> places;
  Pair words;
  std::vector<Pair> outgoing;  // over which it asks
  std::vector<Pair> incoming;  // over which it is asked

  std::string encode() const;
  static Result<Address> decode(std::string_view bytes);
};

}  // namespace hmc::verbs
