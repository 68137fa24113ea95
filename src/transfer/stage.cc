#include "transfer/stage.h"

#include "base/error.h"
#include "memory/backends.h"

namespace hmc {

StageSlot::~StageSlot() {
  registration.reset();
  pins.clear();
  if (host.ptr) hostBackend().release(host.ptr);
}

Result<std::unique_ptr<StageSlot>> StagePool::take() {
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto slot = std::move(idle_.back());
      idle_.pop_back();
      return slot;
    }
  }
  auto slot = std::make_unique<StageSlot>();
  HMC_ASSIGN(slot->host, hostBackend().allocate(0, kSlotSize));
  slot->pins.pinForAll(slot->host);
  // Peers never reach a slot: its key is not handed out.
  HMC_ASSIGN(slot->registration, transport_.registerRegion(slot->host, Access::read));
  return slot;
}

void StagePool::give(std::unique_ptr<StageSlot> slot) {
  std::lock_guard lock(mutex_);
  idle_.push_back(std::move(slot));
}

}  // namespace hmc
