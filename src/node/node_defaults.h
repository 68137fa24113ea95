#pragma once

#include "hmc/node.h"

namespace hmc {

// The lease of options that withEnvironment() has completed.
inline std::chrono::milliseconds leaseOf(const NodeOptions& options) {
  return options.lease.value_or(std::chrono::milliseconds{});
}

// The options, and what the environment says where they say nothing. Secret and encryption are
// completed where they are used, which stores do as well.
Result<NodeOptions> withEnvironment(NodeOptions options);

}  // namespace hmc
