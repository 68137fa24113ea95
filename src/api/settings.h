#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "hmc/node.h"
#include "hmc/result.h"

namespace hmc {

// What the environment says about the documented classes, which have no arguments for it. The
// variables and their defaults are in base/environment.h.
struct Settings {
  std::chrono::milliseconds transfer{};  // HMC_TIMEOUT_MS: put, get, wait
  std::chrono::milliseconds receive{};   // HMC_RECV_TIMEOUT_MS: ctrlRecv and its kin
  std::chrono::milliseconds connect{};   // HMC_CONNECT_TIMEOUT_MS: waiting for a server
  bool strict = false;                   // HMC_STRICT_TRANSPORT=1: no substitute transports
  NodeOptions node;                      // whose defaults are the environment's, too

  // A value that makes no sense is an error that names the variable.
  static Result<Settings> fromEnvironment();
};

}  // namespace hmc
