#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/futex.h"
#include "hmc/device.h"
#include "node/local_memory.h"
#include "node/remote_mapping.h"

namespace hmc::pool {

// What lies behind an open slot: memory of ours, or a peer's.
struct Reach {
  std::shared_ptr<LocalMemory> own;
  std::shared_ptr<RemoteMapping> peers;
  uint64_t size = 0;
  Device device;
  char* data = nullptr;  // where the slot is mapped in this process, if it is
};

// One member's memory in one space. It is open while this process can reach it; who uses it is
// inside meanwhile, so that its addresses are never given to another member in the middle of a
// copy. Safe from any thread, except that one thread at a time opens and closes it.
class Slot {
 public:
  // False while it is closed; else leave() soon.
  bool enter() {
    if ((state_.fetch_add(1, std::memory_order_acquire) & kOpen) != 0) [[likely]]
      return true;
    leave();
    return false;
  }
  void leave() {
    if (state_.fetch_sub(1, std::memory_order_release) == 1) futexWakeAll(state_);
  }
  // Both only inside. How often it was opened tells one member from the next.
  const Reach& reach() const { return reach_; }
  uint64_t opening() const { return openings_; }

  // Only while it is closed.
  void open(Reach reach) {
    reach_ = std::move(reach);
    ++openings_;
    state_.fetch_or(kOpen);
  }
  // Returns when nobody is inside any more. Those who are copy a few megabytes at the most.
  Reach close() {
    state_.fetch_and(~kOpen);
    for (uint32_t inside = state_.load(); inside != 0; inside = state_.load())
      futexWait(state_, inside, Deadline::never());
    return std::exchange(reach_, {});
  }

 private:
  static constexpr uint32_t kOpen = uint32_t{1} << 31;

  std::atomic<uint32_t> state_{0};  // how many are inside, and kOpen
  Reach reach_;                     // written while closed
  uint64_t openings_ = 0;           // the same
};

// Inside a slot until it goes; `false` where it was closed.
class SlotUse {
 public:
  explicit SlotUse(Slot* slot) : slot_(slot && slot->enter() ? slot : nullptr) {}
  ~SlotUse() {
    if (slot_) slot_->leave();
  }
  SlotUse(const SlotUse&) = delete;
  SlotUse& operator=(const SlotUse&) = delete;
  explicit operator bool() const { return slot_ != nullptr; }
  const Reach* operator->() const { return &slot_->reach(); }
  // 0 where there is no slot.
  uint64_t opening() const { return slot_ ? slot_->opening() : 0; }

 private:
  Slot* const slot_;
};

}  // namespace hmc::pool
