#pragma once

// What this build of the library is, and what it finds in this process: for `hmc info` and for
// reports about problems. Needs C++17.

#include <string>
#include <vector>

#include "hmc/device.h"
#include "hmc/export.h"

namespace hmc {

struct BuildReport {
  std::string version;
  std::string compiler;
  std::string type;     // "Release", "Debug", ...
  std::string library;  // the file that this code was loaded from
};
HMC_API BuildReport buildReport();

// One kind of memory.
struct MemoryReport {
  DeviceKind kind = DeviceKind::cpu;
  int devices = 0;
  std::string detail;  // what provides it, or why there is none
};
// Every kind, the host's first. Loads the runtimes that it can find.
HMC_API std::vector<MemoryReport> memoryReport();

// One environment variable that the library reads.
struct SettingReport {
  std::string variable;
  std::string meaning;
  std::string value;             // as it is now; a secret is not told
  bool fromEnvironment = false;  // else the default
  std::string problem;           // why the value makes no sense, if so
};
HMC_API std::vector<SettingReport> settingsReport();

}  // namespace hmc
