#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "doctor/finding.h"
#include "hmc/info.h"
#include "hmc/status.h"

// What this host allows. A check gets everything it judges as arguments, so that tests can show it
// broken machines; `root` is the folder that holds proc/, sys/ and dev/. The try functions and
// limitOf() ask the real machine.
namespace hmc::tool {

struct Limit {
  static constexpr uint64_t kUnlimited = UINT64_MAX;
  uint64_t soft = kUnlimited;
  uint64_t hard = kUnlimited;
};
Limit limitOf(int resource);  // RLIMIT_...

// `tried` is tryProcessVm(): may a process that is not our ancestor read our memory?
Finding checkProcessVm(const std::string& root, const Status& tried);
Status tryProcessVm();

// `tried` is tryMemfd(): memory that peers can map.
Finding checkMemfd(const Status& tried);
Status tryMemfd();

Finding checkShm(const std::string& root);
// Matters where there is an RDMA device.
Finding checkMemlock(const std::string& root, const Limit& limit);
Finding checkHugePages(const std::string& root);
Finding checkDescriptors(const Limit& limit);
Finding checkPorts(const std::string& root);
// The library's variables in the environment.
Finding checkSettings(const std::vector<SettingReport>& settings);

// All of the above and RDMA, on this host.
std::vector<Finding> checkHost();

}  // namespace hmc::tool
