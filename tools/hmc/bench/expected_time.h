#pragma once

#include <string>
#include <vector>

#include "bench/bench.h"

// How long the steps of a run will take, before any of them is measured. Large transfers take
// longer than --seconds says, because each is repeated a few times, and they come last.
namespace hmc::bench {

// Seconds of each step, in their order. `local`: the other side is a process of this machine.
std::vector<double> secondsOfSweep(const std::vector<std::string>& transports, const Plan& plan,
                                   const SessionOptions& session, bool local);
std::vector<double> secondsOfAllPaths(const std::vector<std::string>& transports, const Plan& plan);
std::vector<double> secondsOfFirstPuts(const Plan& plan);

}  // namespace hmc::bench
