#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "hmc/result.h"

namespace hmc::pool {

// What the environment says of a process that a launcher started as one rank of many.
// HMC_POOL_STORE, HMC_POOL_RANK and HMC_POOL_SIZE count first, each for itself.
struct Launch {
  std::string launcher;  // who gave the rank: "torchrun"; empty: nobody
  std::optional<uint32_t> rank;
  std::optional<uint32_t> size;
  std::string store;  // where all ranks meet
  // The launcher says so, and `store` was derived from what it says.
  bool severalHosts = false;
};

// The value of an environment variable.
using Environment = std::function<std::optional<std::string>(const char* name)>;
std::optional<std::string> environmentVariable(const char* name);  // this process's

// An error names the variable that is wrong, or the one to set where no launcher names a store.
Result<Launch> readLaunch(const Environment& environment);

// This process's.
Result<Launch> readLaunch();

}  // namespace hmc::pool
