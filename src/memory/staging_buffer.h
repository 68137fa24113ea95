#pragma once

#include <memory>

#include "memory/device_pins.h"
#include "memory/mapping.h"

namespace hmc {

// Host memory that bytes of devices pass through, pinned for every kind that it is used with.
class StagingBuffer {
 public:
  static Result<std::unique_ptr<StagingBuffer>> create(size_t size);

  size_t size() const { return memory_.size(); }
  Region region(size_t size) const { return {memory_.get(), size, Device{}}; }

  // A device may still read or write it and nobody knows how long: it stays for good.
  static void abandon(std::unique_ptr<StagingBuffer> buffer);

  void pinFor(Backend& backend) { pins_.pin(region(size()), backend); }

 private:
  explicit StagingBuffer(Mapping memory) : memory_(std::move(memory)) {}

  Mapping memory_;
  DevicePins pins_;  // last: unpinned first
};

// A buffer of that size that was used before, or a new one; back it goes at the end. Those that
// wait for the next user are few and stay pinned. Safe from any thread.
struct GiveBack {
  void operator()(StagingBuffer* buffer) const;
};
using BorrowedBuffer = std::unique_ptr<StagingBuffer, GiveBack>;
inline constexpr size_t kBorrowedSize = size_t{4} << 20;
// For lists of blocks, of which a long one has several under way.
inline constexpr size_t kBorrowedListSize = size_t{256} << 10;
Result<BorrowedBuffer> borrowBuffer(size_t size = kBorrowedSize);

}  // namespace hmc
