#pragma once

#include <chrono>
#include <memory>

#include "transport/transport.h"

namespace hmc::test {

// What a Node would open a link with. The lease is longer than any test, since nobody renews it.
inline LinkOptions linkOptions(bool initiator,
                               std::chrono::milliseconds lease = std::chrono::minutes(2)) {
  LinkOptions options;
  options.initiator = initiator;
  options.lease = std::make_shared<Lease>(lease);
  options.credentials = "what both ends know";
  return options;
}

}  // namespace hmc::test
