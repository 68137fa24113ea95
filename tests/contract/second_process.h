#pragma once

#include <string>

#include "hmc/result.h"
#include "memory/backend.h"

namespace hmc {

// Runs one disabled test of the current suite again in a process of its own, which inherits a Share
// as a real peer would receive it. A fresh process, not a fork: threads and vendors' runtimes do
// not survive one.
class SecondProcess {
 public:
  // The exit status of that process: 0 when its test passed. It has the parameter, if any, of the
  // test that runs now, and one more variable in its environment, as "NAME=value".
  static int run(const std::string& test, const Share& share, const std::string& variable = "");
  // In the second process: what run() was given.
  static Result<Share> inheritedShare();
};

}  // namespace hmc
