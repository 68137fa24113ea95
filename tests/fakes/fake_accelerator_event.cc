#include "fakes/fake_accelerator_event.h"

#include "base/error.h"

namespace hmc {

FakeEvent::~FakeEvent() {
  if (!recorded_) point_->pass();
}

Status FakeEvent::record(const DeviceQueue& queue) {
  HMC_TRY(owner_.healthOf(index_));
  if (queue.device.index != index_) {
    return error(Code::invalidArgument, "an event of device {} cannot be recorded on {}", index_,
                 queue.device.toString());
  }
  HMC_ASSIGN(FakeQueue * found, owner_.queueOf(queue));
  std::lock_guard lock(mutex_);
  if (holds_ && !recorded_ && !point_->passed()) {
    return error(Code::invalidArgument, "an event that a queue waits for cannot be recorded");
  }
  point_ = std::make_shared<FakePoint>();
  recorded_ = true;
  found->push(point_);
  return Status();
}

Status FakeEvent::signal() {
  std::lock_guard lock(mutex_);
  if (recorded_) {
    return error(Code::invalidArgument, "an event that was recorded cannot be signalled");
  }
  point_->pass();
  return Status();
}

Result<bool> FakeEvent::passed() {
  HMC_TRY(owner_.healthOf(index_));
  std::lock_guard lock(mutex_);
  if (point_->passed()) return true;
  point_->hasten();
  return false;
}

Status FakeEvent::hold(const DeviceQueue& queue) {
  HMC_ASSIGN(FakeQueue * found, owner_.queueOf(queue));
  std::lock_guard lock(mutex_);
  holds_ = true;
  found->hold(point_);
  return Status();
}

FakePin::~FakePin() {
  std::lock_guard lock(owner_.mutex_);
  owner_.pinned_.erase(first_);
}

}  // namespace hmc
