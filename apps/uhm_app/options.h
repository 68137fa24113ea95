#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mode.h"

namespace hmc::uhm {

enum class Role { server, client };

// The command line and, where it says nothing, the documented variables of the environment.
struct Options {
  const Mode* mode = findMode("uhm");
  std::string serverIp = "127.0.0.1";
  std::string clientIp = "127.0.0.1";
  std::string controlIp;  // empty: serverIp
  std::string udsDir;     // empty: the control link is TCP
  uint32_t selfRank = 0;
  uint32_t peerRank = 0;
  uint16_t dataPort = 2025;
  uint16_t controlPort = 2028;
  size_t channels = 1;
  size_t chunk = 0;  // 0: what putPipeline chooses
  size_t inflight = 64;
  size_t buffer = size_t{128} << 20;
  bool hostOnly = false;

  // The client's.
  std::vector<size_t> sizes;
  uint64_t repeats = 5;
  uint64_t warmups = 2;
  std::string csv = "performanceTest_client.csv";
};

// Ends the program where the command line asks for help (0) or is wrong (2).
Options parseOptions(Role role, int argc, char** argv);

}  // namespace hmc::uhm
