#include "transfer/stage.h"

#include "base/error.h"
#include "memory/backends.h"

namespace hmc {

Result<std::unique_ptr<StageSlot>> StagePool::take(const Device& device) {
  HMC_ASSIGN(Backend * backend, findBackend(device));
  std::unique_ptr<StageSlot> slot;
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      slot = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (!slot) {
    slot = std::make_unique<StageSlot>();
    HMC_ASSIGN(slot->host, StagingBuffer::create(kSlotSize));
    // Peers never reach a slot: its key is not handed out.
    HMC_ASSIGN(slot->registration, transport_.registerRegion(slot->host->region(kSlotSize),
                                                             Access::read, Exposure::ours));
  }
  slot->host->pinFor(*backend);
  return slot;
}

void StagePool::give(std::unique_ptr<StageSlot> slot) {
  std::lock_guard lock(mutex_);
  idle_.push_back(std::move(slot));
}

}  // namespace hmc
