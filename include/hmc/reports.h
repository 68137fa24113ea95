#pragma once

#include "hmc/cpp17.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace hmc {

/// One transport as seen from a pair of peers.
struct PathReport {
  std::string transport;
  bool usable = false;
  bool preferred =
      false;           ///< what a put takes, of the size that was asked about or else a small one
  std::string reason;  ///< why it is, or why it is not
  /// How it has reached the peer's regions that were opened so far: "mapped", "process_vm, ring".
  std::string used;
  /// One blocking put of the size that was asked about, in nanoseconds: what such a transport
  /// typically takes, which is no promise, and what `hmc bench` measured on this host: that size,
  /// or the sizes around it. Beyond those that were measured there is what they let expect.
  std::optional<double> predictedNs;
  std::optional<double> measuredNs;
  std::optional<double> extrapolatedNs;
};

/// What one transport of a Node did so far.
struct TransportCounts {
  std::string transport;
  uint64_t operations = 0;  ///< pieces that it accepted or that were copied into mapped memory
  uint64_t bytes = 0;       ///< of those
  uint64_t retries = 0;     ///< operations that it had to start again
  uint64_t stalls = 0;      ///< how often it took fewer operations than it was offered
  uint64_t altered = 0;  ///< pieces that did not fit their checksum when they came here (integrity)
};

/// What Peer::probe() finds out.
struct PeerFacts {
  std::string version;                     ///< of HMC over there
  std::chrono::nanoseconds clockOffset{};  ///< its wall clock minus ours
  std::chrono::nanoseconds roundTrip{};  ///< of a request on the control channel, the best of a few
  bool away = false;                     ///< it is on another host, as far as addresses tell
};

}  // namespace hmc
