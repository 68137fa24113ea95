#include "memory/runtime_event.h"

#include "base/error.h"

namespace hmc {

RuntimeEvent::~RuntimeEvent() {
  UsedDevice used(owner_.runtime(), index_);
  owner_.runtime().destroyEvent(event_);
}

Status RuntimeEvent::record(const DeviceQueue& queue) {
  HMC_ASSIGN(RuntimeDevice * device, owner_.deviceOf(queue));
  if (queue.device.index != index_) {
    return error(Code::invalidArgument, "an event of device {} cannot be recorded on {}", index_,
                 queue.device.toString());
  }
  HMC_ASSIGN(void* stream, device->streamOf(queue));
  UsedDevice used(owner_.runtime(), index_);
  HMC_TRY(used.status());
  std::lock_guard lock(mutex_);
  HMC_TRY(owner_.runtime().record(event_, stream));
  recorded_ = true;
  done_ = false;
  return Status();
}

Status RuntimeEvent::signal() {
  std::lock_guard lock(mutex_);
  if (recorded_) {
    return error(Code::invalidArgument, "an event that was recorded cannot be signalled");
  }
  done_ = true;
  return Status();
}

Result<bool> RuntimeEvent::passed() {
  std::lock_guard lock(mutex_);
  if (done_ || !recorded_) return done_;
  UsedDevice used(owner_.runtime(), index_);
  HMC_TRY(used.status());
  HMC_ASSIGN(done_, owner_.runtime().hasPassed(event_));
  return done_;
}

Status RuntimeEvent::hold(const DeviceQueue& queue) {
  HMC_ASSIGN(RuntimeDevice * device, owner_.deviceOf(queue));
  std::lock_guard lock(mutex_);
  if (done_) return Status();
  if (!recorded_) {
    return error(Code::unsupported, "queues of {} cannot wait for the host: poll the event instead",
                 owner_.facts().name);
  }
  HMC_ASSIGN(void* stream, device->streamOf(queue));
  UsedDevice used(owner_.runtime(), queue.device.index);
  HMC_TRY(used.status());
  return owner_.runtime().wait(stream, event_);
}

}  // namespace hmc
