#pragma once

#include <string>

#include "bench/against/program.h"

namespace hmc::bench {

// A TCP port that nothing uses now.
Result<int> freePort(const std::string& host = "127.0.0.1");

// Starts a server that ends after one client, then the client, again until the server listens.
// Answers what the client printed.
Result<std::string> runServerAndClient(const Command& server, const Command& client,
                                       Deadline deadline);

}  // namespace hmc::bench
