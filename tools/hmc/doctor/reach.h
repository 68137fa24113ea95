#pragma once

#include <chrono>

#include "doctor/finding.h"
#include "doctor/peer_checks.h"

namespace hmc::tool {

// The steps below our own protocol.
struct Reach {
  Finding name;     // was the host's name found?
  int problem = 0;  // errno of the attempt to connect, ETIMEDOUT when no answer came in time
};
Reach tryReach(const PeerAddress& target, std::chrono::milliseconds timeout);

}  // namespace hmc::tool
