#pragma once

#include <string>
#include <utility>
#include <vector>

#include "hmc/info.h"
#include "hmc/node.h"

namespace hmc::tool {

// What `hmc info` shows.
struct Info {
  BuildReport build;
  std::vector<MemoryReport> memory;
  std::vector<PathReport> transports;
  std::string transportProblem;  // why there are none
  std::vector<SettingReport> settings;
};

Info collectInfo();
std::string toText(const Info& info);
std::string toJson(const Info& info);

}  // namespace hmc::tool
