#include "peer_options.h"

#include <cstdlib>
#include <sstream>

namespace hmc::tool {

NodeOptions optionsFromEnvironment(const std::string& name) {
  NodeOptions options;
  options.name = name;
  options.insecure = true;
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

std::string hostOf(const std::string& address) {
  auto begin = address.find("://");
  begin = begin == std::string::npos ? 0 : begin + 3;
  std::string host = address.substr(begin, address.rfind(':') - begin);
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  return host.empty() ? "127.0.0.1" : host;
}

}  // namespace hmc::tool
