#pragma once

#include <string>
#include <vector>

#include "transport/transport.h"
#include "transport/ucx/api.h"

// Which of UCX's transports carries the bytes, for explain().
namespace hmc::ucx {

// "tcp/eth0" from what ucp_ep_print_info() prints: the lane that messages take. Empty when no line
// is one of such a lane.
std::string laneOf(const std::string& printed);
std::string laneOf(const Api& api, ucp_ep_h endpoint);

// Does this lane's other end lie with the kernel, which says when the process is gone?
bool isTcp(const std::string& lane);
// Does hardware put and get over this lane? Elsewhere UCX emulates it with messages of its own, and
// ends the target's process when it cannot answer one (1.13 to 1.22): we send ours instead.
bool isHardware(const std::string& lane);
// Can there be such a lane, by what ucp_context_print_info() prints: does UCX have a device for it,
// and do its settings let it use that?
bool hasHardware(const std::string& printed);
bool hasHardware(const Api& api, ucp_context_h context);
// Has this machine one at all?
bool hasRdmaDevice();

// Why UCX takes this lane where a faster one could be, with the fix; empty when none could.
// `modules` is the folder of UCX's modules, `devices` the kernel's list of RDMA devices.
std::string slowerBecause(const std::string& lane, const std::string& version,
                          const std::string& modules, const std::string& devices);
std::string slowerBecause(const Api& api, const std::string& lane);

// The lanes that there can be on this machine, fastest first.
std::vector<Transport::Path> pathsOfThisMachine();

}  // namespace hmc::ucx
