#include "node/far_slots.h"

#include "node/stage_host.h"

namespace hmc {

FarSlots::FarSlots(uint32_t count) {
  for (uint32_t slot = count; slot > 0; --slot) free_.push_back(slot - 1);
}

std::optional<uint32_t> FarSlots::take() {
  std::lock_guard lock(mutex_);
  if (free_.empty()) return std::nullopt;
  const uint32_t slot = free_.back();
  free_.pop_back();
  return slot;
}

void FarSlots::give(uint32_t slot) {
  std::lock_guard lock(mutex_);
  free_.push_back(slot);
}

void StagedRegion::copy(OpKind kind, uint32_t slot, uint64_t offset, size_t size,
                        Completion& completion) {
  const SlotCopy request{kind, what_.transport, slot, what_.region, what_.number, offset, size};
  channel_->ask(kCopySlot, request.encode(), [&completion](const Result<std::string>& answer) {
    answer.ok() ? completion.finish() : completion.fail(answer.status());
  });
}

}  // namespace hmc
