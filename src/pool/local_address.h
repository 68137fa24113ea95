#pragma once

#include <string>

#include "hmc/result.h"

namespace hmc::pool {

// Where a listener of ours is reached by those who reach the store: "tcp://" and the address that
// packets to the store leave from, any port. Loopback for a store on a unix socket.
Result<std::string> listenAddressFor(const std::string& store);

}  // namespace hmc::pool
