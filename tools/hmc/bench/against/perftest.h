#pragma once

#include <chrono>
#include <optional>
#include <string>

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

// The port and GID for perftest: the same that our own transport chooses.
struct RdmaAddress {
  std::string device;           // "mlx5_0"
  int port = 1;                 // the first that is active
  std::optional<int> gidIndex;  // on Ethernet only
};
// Looks in sys/class/infiniband below `root`, which only tests set. Obeys HMC_RDMA_DEVICES and
// HMC_RDMA_GID_INDEX. Otherwise takes the first active port and one of its RoCE v2 GIDs, with an
// IPv4 address if there is one.
Result<RdmaAddress> findRdmaAddress(const std::string& root = "");

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
