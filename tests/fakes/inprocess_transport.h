#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hmc/result.h"
#include "transport/transport.h"

namespace hmc::fakes {

// What transports of one process share so that they reach each other.
class InProcessWire;
std::shared_ptr<InProcessWire> makeInProcessWire();

struct InProcessOptions {
  size_t window = 64;  // operations that one link queues before post() takes no more
  size_t largest = size_t{1} << 20;
  // Facts of the transport that it plays.
  std::string name = "inprocess";
  std::vector<Transport::Path> paths;
  bool onDemand = false;
  // Memory of no other kind than the host's can be registered.
  bool hostOnly = false;
  // Larger regions cannot be registered either.
  size_t mostRegistered = SIZE_MAX;
  // Registrations so far, and those that are left.
  std::shared_ptr<std::atomic<int>> registered = std::make_shared<std::atomic<int>>(0);
  std::shared_ptr<std::atomic<int>> live = std::make_shared<std::atomic<int>>(0);
  // Why the peer's memory is not reached as fast as it could be.
  std::string slowerBecause;
  // Called by whoever registers memory.
  std::function<void()> registering = [] {};
  // While it is not ok, every registration fails with it.
  std::shared_ptr<Status> refusal = std::make_shared<Status>();
};

// The simplest thing that keeps the contract of transport/transport.h: post() queues, progress()
// copies. For tests of what lies above the seam, and of the contract suite itself.
Result<std::unique_ptr<Transport>> createInProcess(std::shared_ptr<InProcessWire> wire,
                                                   InProcessOptions options = {});

}  // namespace hmc::fakes
