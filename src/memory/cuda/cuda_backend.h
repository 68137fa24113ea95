#pragma once

#include <deque>

#include "memory/cuda/event.h"
#include "memory/cuda/memory.h"

namespace hmc::cuda {

// NVIDIA GPUs through the driver API.
class CudaBackend final : public Backend {
 public:
  static Result<std::unique_ptr<CudaBackend>> create(const char* library = "libcuda.so.1");

  Result<Region> allocate(int index, size_t size) override;
  Status release(void* ptr) override;
  Status copy(const CopyBatch& batch, const DeviceQueue& queue) override;
  Result<std::unique_ptr<DeviceEvent>> event(int index) override;
  Result<Region> locate(const void* ptr) override { return memory_.locate(ptr); }
  Result<Share> share(const Region& region, ShareFor purpose) override {
    return memory_.share(region, purpose);
  }
  Result<std::unique_ptr<Reservation>> reserve(size_t size) override {
    return memory_.reserve(size);
  }
  Result<Region> attach(const Share& share, void* at) override;
  Status detach(const Region& region) override;
  Result<std::unique_ptr<PinnedMemory>> pin(const Region& host) override;

  const Driver& driver() const { return driver_; }

 private:
  CudaBackend(Facts facts, Driver driver, const std::vector<CuDevice>& handles);
  // Waits for the copies of all queues.
  Status drain();
  // A device whose context is there, or the first one.
  CudaDevice& anyDevice();

  const Driver driver_;
  std::deque<CudaDevice> devices_;  // by index; never changes
  Words words_;
  Memory memory_;
  std::atomic<bool> usersStreams_{false};  // copies were enqueued on streams that are not ours
};

}  // namespace hmc::cuda
