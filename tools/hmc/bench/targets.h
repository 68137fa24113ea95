#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/measure.h"

// The targets of docs/performance.md, each measured beside its ceiling.
namespace hmc::bench {

// All targets of these transports.
Status measureTargets(Bench& bench, const std::vector<std::string>& transports);
// How long each step of that takes, where --seconds says `each`.
std::vector<double> secondsOfTargets(const std::vector<std::string>& transports, bool onDevice,
                                     double each);

// Our 8-byte put has to beat the 8-byte put of each competitor in the run.
void addCompetitorTargets(Run& run);

// Beside perftest. A note says so where perftest is not installed.
Status measureVerbsTargets(Bench& bench);

// Beside direct calls of UCX. A note says so where the build had no UCX headers.
Status measureUcxTargets(Bench& bench);

// In their place where --memory names a device: between that device, another process's memory of it
// and its host memory.
Status measureDeviceTargets(Bench& bench, const std::vector<std::string>& transports);
inline constexpr size_t kDeviceTargetSteps = 17;

// Memory of our device to the peer's memory of it through host memory, in pieces that overlap.
Status measureStreamTargets(Bench& bench, const Path& toHost, Device there);

// What idle peers cost, what a put costs among many peers and regions, and how puts scale with
// threads.
Status measureScaling(Bench& bench);

// In their place for --first-put: the first put of all of a new region beside later ones.
Status measureFirstPuts(Bench& bench);

// Our time is at most `limit` times the ceiling's.
Target timeAtMost(std::string what, const Compared& compared, const std::string& ceiling,
                  double limit);
// Our rate is at least `limit` of the ceiling's. `text` shows a rate, given nanoseconds per
// operation.
using RateText = std::function<std::string(double)>;
Target rateAtLeast(std::string what, const Compared& compared, const std::string& ceiling,
                   double limit, const RateText& text);
RateText bandwidthOf(size_t bytes);

}  // namespace hmc::bench
