#pragma once

#include <string>

// `hmc bench pool`: what copies, joins and leaves of a pool take, beside memcpy and the engine's
// own transfers.
namespace hmc::bench {

struct PoolBenchOptions {
  double seconds = 0.2;  // per measurement
  bool json = false;
};
// Measures and prints. The exit status is 0 when every target was met.
int runPoolBench(const PoolBenchOptions& options);

// Another member of the pool that is measured.
struct PoolMemberOptions {
  std::string store;
  std::string name;
  size_t bytes = 0;
  std::string transport;  // alone; empty: all
};
// Joins, prints its rank and stays until it is killed.
int servePoolMember(const PoolMemberOptions& options);

}  // namespace hmc::bench
