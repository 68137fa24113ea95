#pragma once

#include <atomic>
#include <mutex>

#include "memory/backend.h"
#include "memory/cuda/driver.h"

namespace hmc::cuda {

// One device: its primary context, which the runtime API and torch use, too, and streams of our
// own. The context takes device memory, so it is made when the device is first used. Safe from any
// thread.
class CudaDevice {
 public:
  CudaDevice(const Driver& driver, int index, CuDevice handle)
      : driver_(driver), index_(index), handle_(handle) {}
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  struct Stream {
    CuContext context;
    CuStream stream;
  };
  Result<CuContext> context();
  bool isReady() const { return ready_.load(std::memory_order_acquire); }
  // The stream behind a queue of this device.
  Result<Stream> streamOf(const DeviceQueue& queue);
  // A queue that nobody else can hold up, once there is a context.
  DeviceQueue zeroing() const { return {{DeviceKind::cuda, index_}, zeroing_}; }
  // An error once a kernel or copy has broken the context. Never blocks.
  Status health();
  // Whether that is for good: nothing runs there any more.
  bool isBroken();
  bool has(int attribute) const;
  CuDevice handle() const { return handle_; }
  int index() const { return index_; }

 private:
  Status prepare();
  Result<CuResult> query();

  const Driver& driver_;
  const int index_;
  const CuDevice handle_;
  std::mutex mutex_;  // held while the context is made
  std::atomic<bool> ready_{false};
  // Written before ready_. The process keeps them: others use the same context.
  CuContext context_ = nullptr;
  CuStream lanes_[DeviceQueue::kLanes] = {};
  CuStream zeroing_ = nullptr;
};

}  // namespace hmc::cuda
