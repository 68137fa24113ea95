#pragma once

#include <memory>

#include "memory/cpu/mapping.h"
#include "memory/device_pins.h"

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

// Takes a buffer that was used before, or makes one; back it goes at the end. Those that wait for
// the next user are few and stay pinned. Safe from any thread.
class BorrowedBuffer {
 public:
  static constexpr size_t kSize = size_t{4} << 20;

  static Result<BorrowedBuffer> take();
  BorrowedBuffer(BorrowedBuffer&&) = default;
  BorrowedBuffer& operator=(BorrowedBuffer&&) = delete;
  ~BorrowedBuffer();

  StagingBuffer* operator->() const { return buffer_.get(); }
  void abandon() { StagingBuffer::abandon(std::move(buffer_)); }

 private:
  explicit BorrowedBuffer(std::unique_ptr<StagingBuffer> buffer) : buffer_(std::move(buffer)) {}
  std::unique_ptr<StagingBuffer> buffer_;
};

}  // namespace hmc
