#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/futex.h"
#include "hmc/deadline.h"

namespace hmc::collective {

// In front of each piece. The fields that both sides know show whether they mean the same.
struct PieceHeader {
  uint64_t operation = 0;  // its number in the group
  uint64_t offset = 0;     // of the bytes, in what this phase of the operation moves
  uint32_t signature = 0;  // which operation it is
  uint32_t phase = 0;
  uint32_t size = 0;
};

// A word that others change and ring, and its owner sleeps on. Its lowest bit says that he does.
class Bell {
 public:
  explicit Bell(std::atomic<uint32_t>& word) : word_(word) {}

  void ring() {
    if ((word_.fetch_add(2) & 1) == 0) return;
    word_.fetch_and(~1U);
    futexWakeAll(word_);
  }
  uint32_t read() const { return word_.load(std::memory_order_acquire) & ~1U; }
  // Returns when it has been rung since it read `seen`, or at the deadline, or for no reason.
  void sleep(uint32_t seen, Deadline deadline) {
    uint32_t value = word_.load();
    if ((value & ~1U) != seen || !word_.compare_exchange_strong(value, value | 1)) return;
    futexWait(word_, value | 1, deadline);
    word_.fetch_and(~1U);
  }

 private:
  std::atomic<uint32_t>& word_;
};

// The memory of one rank that the others write into: a bell, and for each of them a lane: counters,
// and slots for pieces on their way here. Zero when it is new.
class Inbox {
 public:
  static constexpr uint32_t kDepth = 4;  // slots of a lane
  static constexpr size_t kLine = 64;

  struct alignas(kLine) Word {
    std::atomic<uint32_t> value;
  };
  // Written by the other rank.
  struct Lane {
    Word arrived;  // pieces that it has put into our slots
    Word taken;    // pieces of ours that it has taken from its own
    Word blamed;   // 1 + the rank because of which it has given up
  };

  // The same at all ranks.
  struct Shape {
    uint32_t ranks = 1;
    size_t piece = 0;  // the most bytes of one

    static Shape of(uint32_t ranks, size_t memory) {
      constexpr size_t kLeast = size_t{4} << 10;
      constexpr size_t kMost = size_t{256} << 10;  // several fit into a second-level cache
      const size_t share = memory / kDepth / std::max(1U, ranks - 1);
      return {ranks, std::clamp(share / kLine * kLine, kLeast, kMost)};
    }
    size_t slot() const { return kLine + piece; }
    size_t slotsAt() const { return kLine + (ranks - 1) * sizeof(Lane); }
    size_t bytes() const { return slotsAt() + size_t{ranks - 1} * kDepth * slot(); }
  };
  static_assert(sizeof(PieceHeader) <= kLine);

  Inbox(void* base, Shape shape, uint32_t owner)
      : base_(static_cast<char*>(base)), shape_(shape), owner_(owner) {}

  Bell bell() const { return Bell(reinterpret_cast<Word*>(base_)->value); }
  Lane& lane(uint32_t from) const { return reinterpret_cast<Lane*>(base_ + kLine)[indexOf(from)]; }
  // The slot of that lane's piece number `piece`: its header, and kLine behind it the bytes.
  size_t slotOffset(uint32_t from, uint32_t piece) const {
    return shape_.slotsAt() + (size_t{indexOf(from)} * kDepth + piece % kDepth) * shape_.slot();
  }
  char* slot(uint32_t from, uint32_t piece) const { return base_ + slotOffset(from, piece); }

 private:
  // Nobody has a lane to himself.
  uint32_t indexOf(uint32_t from) const { return from < owner_ ? from : from - 1; }

  char* base_;
  Shape shape_;
  uint32_t owner_;
};

}  // namespace hmc::collective
