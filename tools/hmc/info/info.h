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
  std::string installed;  // where from, and where
  std::vector<MemoryReport> memory;
  std::vector<PathReport> transports;
  std::string transportProblem;  // why there are none
  std::vector<SettingReport> settings;
  SecurityReport security;
};

Info collectInfo();
std::string toText(const Info& info);
// {"build": {"version", "compiler", "type", "library", "installed"}, "memory": [{"kind", "devices",
//  "detail"}], "transports": [{"transport", "usable", "reason"}], "settings": [{"variable",
//  "value", "from", "meaning"}], "security": {"host", "network", "open"}}, and where something is
//  wrong "transportProblem" and a "problem" of a setting or of the security.
std::string toJson(const Info& info);

}  // namespace hmc::tool
