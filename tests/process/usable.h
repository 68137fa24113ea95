#pragma once

#include <hmc/node.h>

#include <string>

namespace hmc::test {

// Why a transport cannot be used on this machine, or was not built; empty if it can.
inline std::string whyNotUsable(const std::string& transport) {
  NodeOptions options;
  options.transports = {transport};
  const auto node = Node::create(options);
  if (!node.ok()) return node.status().message();
  for (const PathReport& path : node->transports()) {
    if (!path.usable) return path.transport + ": " + path.reason;
  }
  return "";
}

}  // namespace hmc::test
