#include "transport/select.h"

#include <algorithm>

#include <fmt/core.h>

namespace hmc {

namespace {

TransportChoice choose(const Transport& ours, const std::vector<TransportOffer>& theirs) {
  const auto& facts = ours.facts();
  auto offer = std::find_if(theirs.begin(), theirs.end(),
                            [&](const TransportOffer& one) { return one.name == facts.name; });
  if (offer == theirs.end()) return {facts.name, false, "the peer does not have it"};
  if (offer->domain != facts.domain) {
    return {facts.name, false,
            fmt::format("the peer is out of its reach: we are in {}, it is in {}", facts.domain,
                        offer->domain)};
  }
  return {facts.name, true, fmt::format("both sides are in {}", facts.domain)};
}

}  // namespace

std::vector<TransportChoice> chooseTransports(const std::vector<const Transport*>& ours,
                                              const std::vector<TransportOffer>& theirs) {
  std::vector<TransportChoice> choices;
  choices.reserve(ours.size());
  for (const Transport* transport : ours) choices.push_back(choose(*transport, theirs));
  return choices;
}

}  // namespace hmc
