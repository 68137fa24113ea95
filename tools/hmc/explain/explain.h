#pragma once

#include <string>
#include <vector>

#include "hmc/node.h"

namespace hmc::tool {

struct ExplainOptions {
  std::string address;
  Device local;
  size_t size = size_t{1} << 20;
  double seconds = 10;
};

// Connects, asks, and prints the table. The exit status: 0 when some transport is used.
int runExplain(const ExplainOptions& options);

// The table, a line per transport, and where its times come from.
std::string toText(const std::vector<PathReport>& paths);

}  // namespace hmc::tool
