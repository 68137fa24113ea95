#pragma once

#include "hmc/cpp14.h"

namespace hmc {

/// The transport that a connection asks for. RDMA and UCX are the documented ones; if this host
/// lacks them, the best other one serves and one line on standard error says so
/// (HMC_STRICT_TRANSPORT=1 makes it an error instead). TCP and IPC mean exactly that; AUTO takes
/// the best one.
enum class ConnType { RDMA = 0, UCX = 1, TCP = 2, IPC = 3, AUTO = 4 };

}  // namespace hmc
