#pragma once

#include <atomic>
#include <cstdint>

#include "base/futex.h"
#include "memory/region.h"
#include "transport/ipc/key.h"

// What two processes share when a transfer goes through a ring. Either side may be hostile or
// damaged as far as the other is concerned: every field is read once, checked, and then used.
namespace hmc::ipc {

// A futex that costs its ringer a system call only when somebody sleeps.
struct Bell {
  std::atomic<uint32_t> count;
  std::atomic<uint32_t> sleepers;

  void ring() {
    count.fetch_add(1);
    if (sleepers.load() != 0) futexWakeAll(count);
  }
  // Sleeps unless the bell rang since `seen` was read from count; may return early. With several
  // sleepers at once only the first to wake is sure to be woken: they must set themselves
  // deadlines.
  void sleep(uint32_t seen, Deadline deadline) {
    sleepers.store(1);
    futexWait(count, seen, deadline);
    sleepers.store(0);
  }
};

// "Here is a ring for you": who wants to write to us leaves one and rings `serve`.
struct Invitation {
  enum State : uint32_t { free, writing, written };
  std::atomic<uint32_t> state;
  std::atomic<uint32_t> exchangeSize;
  char exchange[104];
  char link[kNonceSize];       // which of our Links it concerns
  char ringToken[kTokenSize];  // the guest's Ring and Bells, both in its exchange
  char bellsToken[kTokenSize];
};

// One per transport that uses rings, shared with all its peers.
struct Bells {
  alignas(64) Bell serve;                   // something to do for our service thread
  alignas(64) Bell progress;                // something of ours has finished at a peer
  alignas(64) std::atomic<uint32_t> pulse;  // of our service thread
  Invitation invitations[16];
};

inline constexpr uint32_t kSlots = 16;
inline constexpr size_t kSlotBytes = size_t{128} << 10;

// One piece of an operation. The origin takes a slot from free to posted, or back; the target from
// posted to claimed to done; the origin from done to free.
struct alignas(64) Slot {
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
  enum Guest : uint32_t { unanswered, accepted, refused, left };
  std::atomic<uint32_t> guest;   // what the target says to the invitation; a futex
  std::atomic<uint32_t> closed;  // the origin takes everything back: claim nothing more
  Slot slots[kSlots];
  alignas(4096) char data[kSlots][kSlotBytes];

  Region piece(uint32_t slot, size_t size) { return {data[slot], size, Device{}}; }
};

// Both sides of a ring may be in one process, at two addresses, where ThreadSanitizer does not see
// that the slot's state orders what they do. These tell it.
#if defined(__SANITIZE_THREAD__)
extern "C" void __tsan_acquire(void*);
extern "C" void __tsan_release(void*);
inline char orderedByTheRing;
inline void tellOrderBefore() {
  __tsan_release(&orderedByTheRing);
}
inline void tellOrderAfter() {
  __tsan_acquire(&orderedByTheRing);
}
#else
inline void tellOrderBefore() {}
inline void tellOrderAfter() {}
#endif

}  // namespace hmc::ipc
