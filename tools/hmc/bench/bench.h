#pragma once

#include <string>
#include <vector>

#include "bench/measure.h"

namespace hmc::bench {

struct BenchOptions {
  SessionOptions session;
  std::vector<std::string> transports;  // empty: all that reach the other side
  size_t smallest = 8;
  size_t largest = size_t{64} << 20;
  double seconds = 0.2;  // per measurement
  size_t window = 16;
  bool verify = false;
  bool targets = false;
  bool allPaths = false;     // instead of the sweep: every transport, and which one is chosen
  bool protections = false;  // instead of the sweep: tcp plain, with checksums and with TLS
  bool firstPut = false;     // instead of the sweep: the first put into new regions
  bool compare = false;      // with competitors that are installed,
  std::vector<std::string> against;  // of these names; empty: all
  bool csv = false;
  bool json = false;
  std::string save;  // a file that the times are added to, for HMC_MEASUREMENTS
};

// Measures and prints. The exit status is 0 when everything could be measured, and every target was
// met and every path well chosen, where that was asked for.
int runBench(const BenchOptions& options);

}  // namespace hmc::bench
