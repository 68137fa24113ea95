#pragma once

#include <string>

#include "hmc/device.h"

// `hmc bench pool`: what copies, joins, leaves, barriers and the store of a pool take, each beside
// its ceiling.
namespace hmc::bench {

struct PoolBenchOptions {
  double seconds = 0.2;  // per measurement
  Device memory;         // of a device: its slots instead of everything else
  bool json = false;
};
// Measures and prints. The exit status is 0 when no target was missed.
int runPoolBench(const PoolBenchOptions& options);

// Another member of the pool that is measured.
struct PoolMemberOptions {
  std::string store;
  std::string name;
  size_t bytes = 0;
  std::string transport;  // alone; empty: all
  Device memory;          // where the bytes lie
};
// Joins, prints its rank and stays until it is killed.
int servePoolMember(const PoolMemberOptions& options);

// Another rank of those that meet in barriers.
struct PoolRankOptions {
  std::string store;
  uint32_t rank = 0;
  uint32_t ranks = 0;
};
// Prints that it is there and does as rank 0 says.
int servePoolRank(const PoolRankOptions& options);

}  // namespace hmc::bench
