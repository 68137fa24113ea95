#pragma once

#include <deque>
#include <map>

#include "memory/cuda/event.h"
#include "memory/cuda/kernels.h"
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
  Result<std::unique_ptr<Reservation>> reserve(size_t size, void* at) override {
    return memory_.reserve(size, at);
  }
  Result<Region> attach(const Share& share, void* at) override;
  Status detach(const Region& region) override;
  Result<std::unique_ptr<PinnedMemory>> pin(const Region& host) override;

  const Driver& driver() const { return driver_; }
  // Host memory is about to be no longer pinned.
  void forget(const void* pinned);

 private:
  CudaBackend(Facts facts, Driver driver, const std::vector<CuDevice>& handles);
  // Passes when everything has run that is enqueued so far on a queue of that device.
  struct QueueEnd {
    int index;
    std::shared_ptr<DeviceEvent> event;
  };
  Result<QueueEnd> endOf(const DeviceQueue& queue);
  Status finish(const DeviceQueue& queue);
  // Waits for the copies of all queues.
  Status drain();
  // For copy(), with the context of the stream current.
  Status enqueue(const CopyBatch& batch, CudaDevice& device, const CudaDevice::Stream& on);
  // Whether a kernel of that device can reach both memories.
  bool reaches(const CudaDevice& device, const CopyBatch& batch);
  // The same for the places of its blocks.
  bool readsEven(const CudaDevice& device, const CopyBatch& batch);
  Region pinnedAround(const void* ptr);
  // A device whose context is there, or the first one.
  CudaDevice& anyDevice();

  const Driver driver_;
  std::deque<CudaDevice> devices_;  // by index; never changes
  Words words_;
  std::deque<CopyKernel> kernels_;  // by index; never changes
  Memory memory_;
  std::mutex mutex_;
  std::map<const char*, size_t> pinned_;  // guarded by mutex_; by first byte
  std::deque<QueueEnd> usersEnds_;        // guarded by mutex_; of copies on streams of users
};

}  // namespace hmc::cuda
