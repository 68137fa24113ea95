#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "doctor/finding.h"
#include "hmc/node.h"

namespace hmc::tool {

// The parts of an address that a peer listens on.
struct PeerAddress {
  std::string address;  // "tcp://host:5001" or "unix:///path"
  std::string host;     // empty for a unix socket
  std::string port;
  std::string path;  // of a unix socket
};
Result<PeerAddress> parsePeerAddress(const std::string& text);

// Judge the outcome of each step. `problem` is an errno, 0 when the connection was made.
Finding judgeReach(const PeerAddress& target, int problem, std::chrono::milliseconds timeout);
Finding judgeHello(const PeerAddress& target, const Status& hello, bool haveSecret);
Finding judgeVersion(const std::string& ours, const Result<PeerFacts>& theirs);
Finding judgeClock(std::chrono::nanoseconds offset, std::chrono::nanoseconds roundTrip);
Finding judgePaths(const std::vector<PathReport>& paths);

// Name, reachability, hello, versions, clocks, round trip and path of the Node behind an address,
// as far as it gets, each within `timeout`.
std::vector<Finding> checkPeer(const std::string& address, const NodeOptions& options,
                               std::chrono::milliseconds timeout);

}  // namespace hmc::tool
