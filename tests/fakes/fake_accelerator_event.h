#pragma once

#include "fakes/fake_accelerator.h"

namespace hmc {

class FakeEvent final : public DeviceEvent {
 public:
  FakeEvent(FakeAccelerator& owner, int index) : owner_(owner), index_(index) {}
  ~FakeEvent() override;

  Status record(const DeviceQueue& queue) override;
  Status signal() override;
  Result<bool> passed() override;
  Status hold(const DeviceQueue& queue) override;

 private:
  FakeAccelerator& owner_;
  const int index_;
  std::mutex mutex_;  // guards what follows
  std::shared_ptr<FakePoint> point_ = std::make_shared<FakePoint>();
  bool recorded_ = false;
  bool holds_ = false;  // a queue waits for point_
};

// Gives the range back.
class FakePin final : public PinnedMemory {
 public:
  FakePin(FakeAccelerator& owner, const char* first) : owner_(owner), first_(first) {}
  ~FakePin() override;

 private:
  FakeAccelerator& owner_;
  const char* const first_;
};

}  // namespace hmc
