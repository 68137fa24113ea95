#include "api/settings.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "base/error.h"

namespace hmc {

namespace {

Status readMilliseconds(const char* variable, std::chrono::milliseconds& value) {
  const char* text = std::getenv(variable);
  if (!text) return Status();
  int64_t number = 0;
  const char* end = text + std::strlen(text);
  auto [stop, problem] = std::from_chars(text, end, number);
  if (problem != std::errc() || stop != end || number <= 0) {
    return error(Code::invalidArgument, "{}=\"{}\": expected a number of milliseconds above 0",
                 variable, text);
  }
  value = std::chrono::milliseconds(number);
  return Status();
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream in(list);
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  return parts;
}

}  // namespace

Result<Settings> Settings::fromEnvironment() {
  Settings settings;
  HMC_TRY(readMilliseconds("HMC_TIMEOUT_MS", settings.transfer));
  HMC_TRY(readMilliseconds("HMC_RECV_TIMEOUT_MS", settings.receive));
  HMC_TRY(readMilliseconds("HMC_CONNECT_TIMEOUT_MS", settings.connect));
  HMC_TRY(readMilliseconds("HMC_LEASE_MS", settings.node.lease));
  settings.node.heartbeat = std::min(settings.node.heartbeat, settings.node.lease / 5);
  if (const char* strict = std::getenv("HMC_STRICT_TRANSPORT"))
    settings.strict = std::string(strict) == "1";
  if (const char* secret = std::getenv("HMC_SECRET")) settings.node.secret = secret;
  if (const char* names = std::getenv("HMC_TRANSPORTS")) settings.node.transports = split(names);
  return settings;
}

}  // namespace hmc
