#pragma once

#include <atomic>
#include <cstdint>

#include "base/futex.h"
#include "hmc/deadline.h"

// What two processes share when a transfer goes through a ring. Either side may be hostile or
// damaged as far as the other is concerned: every field is read once, checked, and then used.
namespace hmc::ipc {

// A futex. Ringing it costs a system call only when a thread sleeps.
struct Doorbell {
  std::atomic<uint32_t> count;
  std::atomic<uint32_t> sleepers;

  void ring() {
    count.fetch_add(1);
    if (sleepers.load() != 0) futexWakeAll(count);
  }
  // Sleeps unless it rang since `seen` was read from count; may return early. Of several sleepers
  // only the first is sure to be woken, so each of them needs a deadline.
  void sleep(uint32_t seen, Deadline deadline) {
    sleepers.store(1);
    futexWait(count, seen, deadline);
    sleepers.store(0);
  }
};

// Through this a transport that uses rings is reached by all its peers.
struct ServicePage {
  alignas(64) Doorbell serve;                  // something to do for our service thread
  alignas(64) Doorbell progress;               // something of ours has finished at a peer
  alignas(64) std::atomic<uint32_t> liveness;  // of our service thread (base/liveness.h)
};

inline constexpr uint32_t kSlots = 16;
inline constexpr size_t kSlotBytes = size_t{128} << 10;

// One piece of an operation. The origin takes a slot from free to posted, or back; the target from
// posted to claimed to done; the origin from done to free.
struct alignas(64) RingSlot {
  enum State : uint32_t { free, posted, claimed, done };
  std::atomic<uint32_t> state;
  std::atomic<uint32_t> kind;
  std::atomic<uint32_t> size;
  std::atomic<uint32_t> outcome;  // a Code
  std::atomic<uint64_t> region;
  std::atomic<uint64_t> offset;
};

// One per link and direction, made by the origin when it first needs it.
struct Ring {
  std::atomic<uint32_t> closedByOrigin;  // claim nothing more
  std::atomic<uint32_t> closedByTarget;  // nothing that is posted is claimed any more
  RingSlot slots[kSlots];
  alignas(4096) char data[kSlots][kSlotBytes];
};

// Both sides of a ring may be in one process, which maps it at two addresses. ThreadSanitizer then
// does not see that a slot's state orders their accesses, so these calls say it.
#if defined(__SANITIZE_THREAD__)
extern "C" void __tsan_acquire(void*);
extern "C" void __tsan_release(void*);
inline char tsanRingOrder;
inline void tsanRelease() {
  __tsan_release(&tsanRingOrder);
}
inline void tsanAcquire() {
  __tsan_acquire(&tsanRingOrder);
}
#else
inline void tsanRelease() {}
inline void tsanAcquire() {}
#endif

}  // namespace hmc::ipc
