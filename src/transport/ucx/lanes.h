#pragma once

#include <string>
#include <vector>

#include "transport/transport.h"
#include "transport/ucx/library.h"

// Which of UCX's transports carries the bytes, for explain().
namespace hmc::ucx {

// The lane that this endpoint's bytes take, "tcp/eth0": from ucp_ep_query(). UCX 1.13 does not tell
// it there, so for that one from ucp_ep_print_info().
std::string laneOf(const Api& api, ucp_ep_h endpoint);
// The same, of all lanes that an endpoint has: one of hardware, else the first.
std::string mainLane(const std::vector<std::string>& lanes);
// The same, from what ucp_ep_print_info() prints: the lane that messages take, empty if there is
// none.
std::string printedLane(const std::string& printed);

// Over tcp the kernel tells when the peer's process is gone.
bool isTcp(const std::string& lane);
// Does hardware put and get over this lane? Elsewhere UCX emulates them with its own messages, and
// aborts the target's process when it cannot answer one (1.13 to 1.22): we send ours instead.
bool isHardware(const std::string& lane);
// Can there be such a lane, by what ucp_context_print_info() prints?
bool hasHardware(const std::string& printed);
bool hasHardware(const Api& api, ucp_context_h context);
// Has this machine an RDMA device?
bool hasRdmaDevice();

// Why UCX takes this lane although there could be a faster one, with the fix; else empty.
// `modules` is the folder of UCX's modules, `devices` the kernel's list of RDMA devices.
std::string slowerBecause(const std::string& lane, const std::string& version,
                          const std::string& modules, const std::string& devices);
std::string slowerBecause(const Api& api, const std::string& lane);

// The lanes that there can be on this machine, fastest first.
std::vector<Transport::Path> pathsOfThisMachine();

}  // namespace hmc::ucx
