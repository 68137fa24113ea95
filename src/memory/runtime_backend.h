#pragma once

#include <atomic>
#include <deque>

#include "memory/runtime_memory.h"

namespace hmc {

// One device of a RuntimeBackend: streams of our own, made when it is first used. Safe from any
// thread.
class RuntimeDevice {
 public:
  RuntimeDevice(Runtime& runtime, const Device& device) : runtime_(runtime), device_(device) {}
  ~RuntimeDevice();
  RuntimeDevice(const RuntimeDevice&) = delete;
  RuntimeDevice& operator=(const RuntimeDevice&) = delete;

  // The stream behind a queue of this device.
  Result<void*> streamOf(const DeviceQueue& queue);
  bool isReady() const { return ready_.load(std::memory_order_acquire); }
  const Device& device() const { return device_; }

 private:
  Status prepare();

  Runtime& runtime_;
  const Device device_;
  std::mutex mutex_;  // held while the streams are made
  std::atomic<bool> ready_{false};
  void* lanes_[DeviceQueue::kLanes] = {};  // written before ready_
};

// A Backend over a vendor's runtime: a new vendor implements Runtime, and this does the rest.
// Places in a reservation need a vendor's virtual memory calls and are unsupported.
class RuntimeBackend final : public Backend {
 public:
  RuntimeBackend(Facts facts, std::unique_ptr<Runtime> runtime);
  ~RuntimeBackend() override;

  Result<Region> allocate(int index, size_t size) override;
  Status release(void* ptr) override;
  Status copy(const CopyBatch& batch, const DeviceQueue& queue) override;
  Result<std::unique_ptr<DeviceEvent>> event(int index) override;
  Result<std::unique_ptr<PinnedMemory>> pin(const Region& host) override;
  Result<Region> locate(const void* ptr) override { return memory_.locate(ptr); }
  Result<Share> share(const Region& region, ShareFor purpose) override;
  Result<std::unique_ptr<Reservation>> reserve(size_t size, void* at) override;
  Result<Region> attach(const Share& share, void* at) override;
  Status detach(const Region& region) override;

  Runtime& runtime() { return *runtime_; }
  // The device that a queue belongs to.
  Result<RuntimeDevice*> deviceOf(const DeviceQueue& queue);

 private:
  Status zero(const Region& region);
  // Waits for the copies of all queues.
  Status drain();

  const std::unique_ptr<Runtime> runtime_;
  std::deque<RuntimeDevice> devices_;  // by index; never changes
  RuntimeMemory memory_;
  std::atomic<bool> usersStreams_{false};  // copies were enqueued on streams that are not ours
};

// For a vendor's load(): `facts` may be why there are no devices, and gets `fix` at its end. Never
// destroyed: threads may still copy while the process exits.
Result<Backend*> makeBackend(Result<Backend::Facts> facts, std::unique_ptr<Runtime> runtime,
                             const char* fix);

}  // namespace hmc
