#include "control/address.h"

#include <sys/un.h>

#include <string_view>

#include "base/error.h"

namespace hmc::control {

namespace {

constexpr std::string_view kTcp = "tcp://";
constexpr std::string_view kUnix = "unix://";
// The kernel wants a zero after the path.
constexpr size_t kLongestPath = sizeof(sockaddr_un::sun_path) - 1;

Result<uint16_t> parsePort(const std::string& address, std::string_view text) {
  uint32_t port = 0;
  bool good = !text.empty() && text.size() <= 5;
  for (char c : text) {
    if (c < '0' || c > '9') good = false;
    port = port * 10 + static_cast<uint32_t>(c - '0');
  }
  if (!good || port > 65535) {
    return error(Code::invalidArgument,
                 "\"{}\" in the address \"{}\" is not a port from 0 to 65535", text, address);
  }
  return static_cast<uint16_t>(port);
}

Result<Address> parseTcp(const std::string& address, std::string_view rest) {
  size_t colon = rest.rfind(':');
  size_t bracket = rest.rfind(']');
  if (colon == std::string_view::npos || (bracket != std::string_view::npos && colon < bracket)) {
    return error(Code::invalidArgument, "the address \"{}\" has no port", address);
  }
  Address out;
  HMC_ASSIGN(out.port, parsePort(address, rest.substr(colon + 1)));
  std::string_view host = rest.substr(0, colon);
  if (!host.empty() && host.front() == '[') {
    if (host.back() != ']') {
      return error(Code::invalidArgument, "the address \"{}\" has a [ without its ]", address);
    }
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return error(Code::invalidArgument,
                 "the IPv6 host in the address \"{}\" must stand in brackets", address);
  }
  if (host.empty()) {
    return error(Code::invalidArgument, "the address \"{}\" has no host", address);
  }
  for (char c : host) {
    if (c <= ' ' || c == '/' || c == '[' || c == ']' || c == 0x7f) {
      return error(Code::invalidArgument,
                   "the host of the address \"{}\" contains a character that hosts do not have",
                   address);
    }
  }
  out.host = std::string(host);
  return out;
}

Result<Address> parseUnix(const std::string& address, std::string_view path) {
  if (path.empty() || path.front() != '/') {
    return error(Code::invalidArgument, "the path of the address \"{}\" must begin with /",
                 address);
  }
  if (path.size() > kLongestPath) {
    return error(Code::invalidArgument,
                 "the path of the address \"{}\" has {} bytes, more than the {} that a unix socket "
                 "can have",
                 address, path.size(), kLongestPath);
  }
  if (path.find('\0') != std::string_view::npos || path.back() == '/') {
    return error(Code::invalidArgument, "the path of the address \"{}\" does not name a file",
                 address);
  }
  Address out;
  out.isUnix = true;
  out.path = std::string(path);
  return out;
}

}  // namespace

std::string Address::toString() const {
  if (isUnix) return "unix://" + path;
  bool brackets = host.find(':') != std::string::npos;
  return fmt::format("tcp://{}{}{}:{}", brackets ? "[" : "", host, brackets ? "]" : "", port);
}

Result<Address> parseAddress(const std::string& text) {
  std::string_view view = text;
  if (view.starts_with(kTcp)) return parseTcp(text, view.substr(kTcp.size()));
  if (view.starts_with(kUnix)) return parseUnix(text, view.substr(kUnix.size()));
  return error(Code::invalidArgument, "the address \"{}\" begins with neither tcp:// nor unix://",
               text);
}

}  // namespace hmc::control
