#include "api/settings.h"

#include <algorithm>
#include <sstream>

#include "base/environment.h"
#include "base/error.h"

namespace hmc {

namespace {

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream in(list);
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  return parts;
}

}  // namespace

Result<Settings> Settings::fromEnvironment() {
  Settings settings;
  HMC_ASSIGN(settings.transfer, millisecondsOf(variable::kTimeout));
  HMC_ASSIGN(settings.receive, millisecondsOf(variable::kReceiveTimeout));
  HMC_ASSIGN(settings.connect, millisecondsOf(variable::kConnectTimeout));
  HMC_ASSIGN(settings.node.lease, millisecondsOf(variable::kLease));
  settings.node.heartbeat = std::min(settings.node.heartbeat, settings.node.lease / 5);
  settings.strict = valueOf(variable::kStrictTransport) == "1";
  settings.node.secret = valueOf(variable::kSecret).value_or("");
  settings.node.insecure = true;  // their manuals know no secret
  settings.node.transports = split(valueOf(variable::kTransports).value_or(""));
  return settings;
}

}  // namespace hmc
