#pragma once

#include <memory>

#include "hmc/result.h"
#include "transport/transport.h"

namespace hmc::fakes {

// What transports of one process share so that they reach each other.
class InProcessWire;
std::shared_ptr<InProcessWire> makeInProcessWire();

struct InProcessOptions {
  size_t window = 64;  // operations that one link queues before post() takes no more
  size_t largest = size_t{1} << 20;
};

// The simplest thing that keeps the contract of transport/transport.h: post() queues, progress()
// copies. For tests of what lies above the seam, and of the contract suite itself.
Result<std::unique_ptr<Transport>> createInProcess(std::shared_ptr<InProcessWire> wire,
                                                   InProcessOptions options = {});

}  // namespace hmc::fakes
