#pragma once

#include "memory/runtime_backend.h"

namespace hmc {

// The runtime's event, or a flag of ours when the host signals it. Queues cannot wait for the flag.
class RuntimeEvent final : public DeviceEvent {
 public:
  RuntimeEvent(RuntimeBackend& owner, int index, void* event)
      : owner_(owner), index_(index), event_(event) {}
  ~RuntimeEvent() override;

  Status record(const DeviceQueue& queue) override;
  Status signal() override;
  Result<bool> passed() override;
  Status hold(const DeviceQueue& queue) override;

 private:
  RuntimeBackend& owner_;
  const int index_;
  void* const event_;
  std::mutex mutex_;  // guards what follows
  bool recorded_ = false;
  bool done_ = false;  // it has passed, and the runtime need not be asked
};

}  // namespace hmc
