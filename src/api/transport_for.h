#pragma once

#include <string>
#include <vector>

#include "api/settings.h"
#include "hmc/conn_type.h"
#include "node/node_impl.h"

namespace hmc {

const char* connTypeName(ConnType type);

// The transports to try for a ConnType, best first; empty means all. `substitute` is set when the
// one that was asked for is not there and others will serve. unsupported under strict settings,
// invalidArgument when the value is none of ConnType.
struct TransportsFor {
  std::vector<std::string> names;
  std::string substituteFor;  // "RDMA (this host has no ...)"
};
Result<TransportsFor> transportsFor(ConnType type, const NodeImpl& node, const Settings& settings);

}  // namespace hmc
