#pragma once

#include <map>
#include <memory>

#include "memory/backend.h"
#include "memory/cpu/mapping.h"

namespace hmc {

// Host memory that bytes of devices pass through, pinned for every kind that it is used with.
class StagingBuffer {
 public:
  static Result<std::unique_ptr<StagingBuffer>> create(size_t size);

  size_t size() const { return memory_.size(); }
  Region region(size_t size) const { return {memory_.get(), size, Device{}}; }

  // Once for each backend. Where it cannot be pinned, as in a process that may not lock so much
  // memory, copies are slower and right all the same.
  void pinFor(Backend& backend);

 private:
  explicit StagingBuffer(Mapping memory) : memory_(std::move(memory)) {}

  Mapping memory_;
  std::map<Backend*, std::unique_ptr<PinnedMemory>> pins_;  // null: it refused. Unpinned first
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
  // A device may still read or write it and nobody knows how long: it is lost for good.
  void abandon() { (void)buffer_.release(); }

 private:
  explicit BorrowedBuffer(std::unique_ptr<StagingBuffer> buffer) : buffer_(std::move(buffer)) {}
  std::unique_ptr<StagingBuffer> buffer_;
};

}  // namespace hmc
