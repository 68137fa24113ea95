#pragma once

#include <string>

#include "hmc/result.h"

namespace hmc::pool {

// The address that packets to the store leave from: "10.0.0.2", "fe80::1". Loopback for a store on
// a unix socket, and for none.
Result<std::string> ownAddressFor(const std::string& store);

// Where a listener of ours is reached by those who reach the store: "tcp://" and that
// address, any port.
Result<std::string> listenAddressFor(const std::string& store);

}  // namespace hmc::pool
