#pragma once

#include <string>

#include "hmc/result.h"

namespace hmc {

// The address that packets to that host leave from, without brackets: "10.0.0.2", "fe80::1". Sends
// nothing to it; asks the resolver if it is a name.
Result<std::string> ownAddressTowards(const std::string& host);

}  // namespace hmc
