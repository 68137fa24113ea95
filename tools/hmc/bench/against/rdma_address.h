#pragma once

#include <optional>
#include <string>

#include "hmc/result.h"

namespace hmc::bench {

// Where RDMA programs are told to send and receive: what our own transport takes by itself.
struct RdmaAddress {
  std::string device;           // "mlx5_0"
  int port = 1;                 // the first that is active
  std::optional<int> gidIndex;  // on Ethernet only
};

// Looks in sys/class/infiniband below `root`, which is empty but in tests. HMC_RDMA_DEVICES and
// HMC_RDMA_GID_INDEX have their say. Else: the first active port, and of its GIDs one of RoCE v2,
// with an IPv4 address if there is one.
Result<RdmaAddress> findRdmaAddress(const std::string& root = "");

}  // namespace hmc::bench
