#include "peer_options.h"

#include <charconv>
#include <cstdlib>
#include <sstream>

#include <fmt/core.h>

namespace hmc::tool {

NodeOptions optionsFromEnvironment(const std::string& name) {
  NodeOptions options;
  options.name = name;
  if (const char* secret = std::getenv("HMC_SECRET")) options.secret = secret;
  if (const char* names = std::getenv("HMC_TRANSPORTS")) {
    std::istringstream in(names);
    for (std::string part; std::getline(in, part, ',');) options.transports.push_back(part);
  }
  return options;
}

std::string withScheme(const std::string& address) {
  if (address.find("://") != std::string::npos) return address;
  return (!address.empty() && address[0] == '/' ? "unix://" : "tcp://") + address;
}

Result<Device> parseDevice(const std::string& text) {
  Device device;
  const size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  std::string names;
  bool known = false;
  for (int i = 0; i <= static_cast<int>(DeviceKind::musa); ++i) {
    const char* one = deviceKindName(static_cast<DeviceKind>(i));
    if (name == one) {
      device.kind = static_cast<DeviceKind>(i);
      known = true;
    }
    names += (names.empty() ? "" : ", ") + std::string(one);
  }
  if (!known)
    return Status(Code::invalidArgument, fmt::format("\"{}\" is none of {}", name, names));
  if (colon == std::string::npos) return device;
  const char* end = text.data() + text.size();
  auto [stop, problem] = std::from_chars(text.data() + colon + 1, end, device.index);
  if (problem != std::errc() || stop != end || device.index < 0)
    return Status(Code::invalidArgument, fmt::format("\"{}\" does not end in a number", text));
  return device;
}

std::string hostOf(const std::string& address) {
  auto begin = address.find("://");
  begin = begin == std::string::npos ? 0 : begin + 3;
  std::string host = address.substr(begin, address.rfind(':') - begin);
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  return host.empty() ? "127.0.0.1" : host;
}

}  // namespace hmc::tool
