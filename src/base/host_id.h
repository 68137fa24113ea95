#pragma once

#include <string>

namespace hmc {

// Equal for two processes that run under one kernel boot and in one network namespace, and so can
// reach each other's FdExchange. Empty when this host does not tell.
std::string hostId();

}  // namespace hmc
