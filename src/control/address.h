#pragma once

#include <cstdint>
#include <string>

#include "hmc/result.h"

namespace hmc::control {

// Where a listener is: "tcp://host:port", "tcp://[::1]:port" or "unix:///path".
struct Address {
  bool isUnix = false;
  std::string host;  // without brackets
  uint16_t port = 0;
  std::string path;

  std::string toString() const;
};

// Strict: the sentence of an error names the part that is wrong.
Result<Address> parseAddress(const std::string& text);

}  // namespace hmc::control
