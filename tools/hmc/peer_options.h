#pragma once

#include <string>

#include "hmc/node.h"

namespace hmc::tool {

// Options for a Node that behaves as the documented classes do: with the secret and the transports
// that the environment names.
NodeOptions optionsFromEnvironment(const std::string& name);

// An address as people type it: "host:5001" means tcp://host:5001.
std::string withScheme(const std::string& address);

// The host in an address: "::1" in "tcp://[::1]:5001".
std::string hostOf(const std::string& address);

}  // namespace hmc::tool
