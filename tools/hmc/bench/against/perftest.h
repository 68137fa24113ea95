#pragma once

#include <chrono>
#include <string>

#include "bench/against/rdma_address.h"
#include "bench/run.h"
#include "hmc/result.h"

// The programs of perftest, with which RDMA hardware is usually measured: both ends of one, on this
// machine.
namespace hmc::bench {

inline constexpr const char* kWriteBandwidth = "ib_write_bw";
inline constexpr const char* kReadBandwidth = "ib_read_bw";
inline constexpr const char* kWriteLatency = "ib_write_lat";

// An error that says how to install them when one is missing.
Status findPerftest();

struct PerftestRun {
  const char* program = kWriteBandwidth;
  size_t bytes = 8;        // of a message
  size_t messages = 1000;  // in all
  size_t depth = 128;      // of these in flight; ib_write_lat has one
  std::chrono::milliseconds timeout = std::chrono::seconds(60);
};

// Nanoseconds per message, of kWriteBandwidth or kReadBandwidth.
Result<double> perftestPerMessage(const RdmaAddress& address, const PerftestRun& run);
// Of kWriteLatency: half a round trip.
Result<Percentiles> perftestLatency(const RdmaAddress& address, const PerftestRun& run);

// They parse what the programs print for one size.
Result<double> parsePerMessage(const std::string& printed);
Result<Percentiles> parseLatency(const std::string& printed);

}  // namespace hmc::bench
