#include "node/stream_order.h"

#include "base/error.h"
#include "memory/backends.h"

namespace hmc {

Result<std::shared_ptr<DeviceEvent>> recordOn(const DeviceQueue& stream) {
  HMC_ASSIGN(Backend * backend, findBackend(stream.device));
  HMC_ASSIGN(std::shared_ptr<DeviceEvent> event, backend->event(stream.device.index));
  HMC_TRY(event->record(stream));
  return event;
}

// Dropped by the caller, without the lock: a transfer may be the last that holds its Node.
StreamHolds::Holds StreamHolds::takeEnded() {
  Holds ended;
  for (auto one = holds_.begin(); one != holds_.end();) {
    const auto next = std::next(one);
    if (one->ended.load(std::memory_order_acquire)) ended.splice(ended.end(), holds_, one);
    one = next;
  }
  return ended;
}

Result<std::unique_ptr<DeviceEvent>> hold(const DeviceQueue& stream) {
  HMC_ASSIGN(Backend * backend, findBackend(stream.device));
  HMC_ASSIGN(auto event, backend->event(stream.device.index));
  HMC_TRY(event->hold(stream));
  return event;
}

Status StreamHolds::releaseAfter(std::shared_ptr<TransferState> transfer,
                                 std::unique_ptr<DeviceEvent> event) {
  Holds dropped;
  Hold* made = nullptr;
  {
    std::lock_guard lock(mutex_);
    dropped = takeEnded();
    made = &holds_.emplace_back(std::move(transfer), std::move(event));
  }
  Status watched = made->transfer->engine().progressThread().watch(*made->transfer, *made);
  // Nobody will tell it of the end: it lets the stream go when it is dropped.
  if (!watched.ok()) made->onComplete(0, watched.code());
  return watched;
}

void StreamHolds::clear() {
  Holds all;
  {
    std::lock_guard lock(mutex_);
    all.swap(holds_);
  }
  for (Hold& one : all) one.transfer->engine().progressThread().forget(one.transfer->id, one);
}

}  // namespace hmc
