#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "hmc/result.h"

// UCX's own put and flush, called directly: the ceiling of the ucx transport. Both sides use the
// libucp that the transport has loaded, and make endpoints as the transport does, so that UCX takes
// the same path. Without UCX headers in the build, making one is an error that says so.
namespace hmc::bench {

// Memory that is put to, served by a thread that polls for a moment after traffic, then sleeps.
class BareUcpTarget {
 public:
  static Result<std::unique_ptr<BareUcpTarget>> start(void* memory, size_t bytes);
  virtual ~BareUcpTarget() = default;
  // What BareUcp::connect() takes, without spaces.
  virtual std::string address() const = 0;
};

class BareUcp {
 public:
  static Result<std::unique_ptr<BareUcp>> connect(const std::string& address, const void* memory);
  virtual ~BareUcp() = default;
  // From the start of the one memory to the start of the other, and a flush.
  virtual Status put(size_t bytes) = 0;
};

}  // namespace hmc::bench
