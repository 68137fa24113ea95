#include "bench/expected_time.h"

#include <algorithm>

namespace hmc::bench {

namespace {

// Bytes in a second on a slow machine: that a run ends early annoys nobody.
double rateOf(const std::string& transport) {
  return transport == "ipc" ? 4e9 : 1e9;
}

double seconds(const Plan& plan) {
  return std::chrono::duration<double>(plan.time).count();
}

// What compare() takes with `bytes` in each operation: two jobs in 13 slices each, and six
// operations before to calibrate them.
double comparing(const Plan& plan, const std::string& transport, size_t bytes) {
  const double once = static_cast<double>(bytes) / rateOf(transport);
  return 26 * std::max(seconds(plan) / 24, once) + 6 * once;
}

}  // namespace

std::vector<double> secondsOfSweep(const std::vector<std::string>& transports, const Plan& plan,
                                   const SessionOptions& session, bool local) {
  std::vector<double> all;
  for (const auto& transport : transports) {
    if (plan.verify) all.push_back(4 * static_cast<double>(session.bytes) / rateOf(transport));
    for (int way = 0; way < 2; ++way) {
      for (const size_t bytes : plan.sizes) all.push_back(comparing(plan, transport, bytes));
      for (const size_t bytes : plan.sizes)
        all.push_back(comparing(plan, transport, bytes * windowOf(plan, bytes)));
    }
    for (const size_t bytes : kBatchBlocks) {
      if (kBlocksOfBatch * bytes > session.bytes) break;
      all.push_back(comparing(plan, transport, kBlocksOfBatch * bytes));
    }
    const bool onDevice = !session.memory.isHost() || !session.peerMemory.isHost();
    if (!onDevice && hasTags(transport, local)) all.push_back(2 * seconds(plan));
  }
  return all;
}

std::vector<double> secondsOfAllPaths(const std::vector<std::string>& transports,
                                      const Plan& plan) {
  std::vector<double> all;
  for (int way = 0; way < 2; ++way) {
    for (const size_t bytes : plan.sizes) {
      double once = 0;
      for (const auto& transport : transports)
        once += static_cast<double>(bytes) / rateOf(transport);
      all.push_back(std::max(9.0 / 8 * seconds(plan), 9 * once) + 4 * once);
    }
  }
  return all;
}

// Memory is taken on both sides, put four times, and given back.
std::vector<double> secondsOfFirstPuts(const Plan& plan) {
  std::vector<double> all;
  for (const size_t bytes : plan.sizes) all.push_back(1 + 4 * static_cast<double>(bytes) / 1e9);
  return all;
}

}  // namespace hmc::bench
