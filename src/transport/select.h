#pragma once

#include <string>
#include <vector>

#include "transport/transport.h"

namespace hmc {

// A transport as a peer announces it.
struct TransportOffer {
  std::string name;
  std::string domain;
};

// One transport and whether this pair of peers can use it. `reason` is worded for a person.
struct TransportChoice {
  std::string name;
  bool usable = false;
  std::string reason;
};

// For each of our transports, in our order of preference: can we reach a peer that offers `theirs`?
std::vector<TransportChoice> chooseTransports(const std::vector<const Transport*>& ours,
                                              const std::vector<TransportOffer>& theirs);

}  // namespace hmc
