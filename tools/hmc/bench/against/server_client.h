#pragma once

#include <string>

#include "bench/against/program.h"

namespace hmc::bench {

// A TCP port of loopback that nobody uses now.
Result<int> freePort();

// Starts a server that ends after one client, then the client, again while the server does not
// listen yet. What the client printed.
Result<std::string> runServerAndClient(const Command& server, const Command& client,
                                       Deadline deadline);

}  // namespace hmc::bench
