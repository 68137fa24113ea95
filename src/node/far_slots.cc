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
  ++changes_;
  changed_.notify_all();
}

void FarSlots::bump() {
  std::lock_guard lock(mutex_);
  ++changes_;
  changed_.notify_all();
}

uint64_t FarSlots::changes() const {
  std::lock_guard lock(mutex_);
  return changes_;
}

void FarSlots::await(uint64_t seen, Deadline until) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, until.at(), [&] { return changes_ != seen; });
}

void StagedRegion::copy(OpKind kind, uint32_t slot, uint64_t offset, size_t size,
                        Completion& completion) {
  const SlotCopy request{kind, what_.transport, slot, what_.region, what_.number, offset, size};
  // The transfer may be gone, and we with it, as soon as the completion is over.
  channel_->ask(kCopySlot, request.encode(),
                [slots = slots_, &completion](const Result<std::string>& answer) {
                  answer.ok() ? completion.finish() : completion.fail(answer.status());
                  slots->bump();
                });
}

}  // namespace hmc
