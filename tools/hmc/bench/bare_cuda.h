#pragma once

#include <cstddef>
#include <memory>

#include "hmc/result.h"

// The driver's own copies between memory of one device and pinned host memory, called directly: the
// ceiling of transfers from and to device memory. Without libcuda.so.1, making one is an error that
// says so.
namespace hmc::bench {

enum class BareWay { deviceToDevice, deviceToHost, hostToDevice };

// For one thread, whose current context it sets. What it allocates stays until the process ends.
class BareCuda {
 public:
  // Each buffer is of that many bytes.
  static Result<std::unique_ptr<BareCuda>> open(int device, size_t bytes);
  virtual ~BareCuda() = default;
  // `count` asynchronous copies of that many bytes, one after the other, then synchronise.
  virtual Status copy(BareWay way, size_t bytes, size_t count = 1) = 0;
  // One to the host and one to the device at the same time; twice the bytes fit in a buffer.
  virtual Status copyBothWays(size_t bytes) = 0;
  // From one buffer of the device to the host and from there to the other, in chunks: each goes on
  // while the next one comes. One chunk of all bytes: first the one, then the other.
  virtual Status copyThroughHost(size_t bytes, size_t chunk) = 0;
};

}  // namespace hmc::bench
