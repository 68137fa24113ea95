#pragma once

#include <optional>
#include <string>

#include "hmc/result.h"

namespace hmc::bench {

// The port and GID for perftest: the same that our own transport chooses.
struct RdmaAddress {
  std::string device;           // "mlx5_0"
  int port = 1;                 // the first that is active
  std::optional<int> gidIndex;  // on Ethernet only
};

// Looks in sys/class/infiniband below `root`, which only tests set. Obeys HMC_RDMA_DEVICES and
// HMC_RDMA_GID_INDEX. Otherwise takes the first active port and one of its RoCE v2 GIDs, with an
// IPv4 address if there is one.
Result<RdmaAddress> findRdmaAddress(const std::string& root = "");

}  // namespace hmc::bench
