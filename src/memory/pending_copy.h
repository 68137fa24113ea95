#pragma once

#include <memory>
#include <optional>

#include "memory/staging_buffer.h"

namespace hmc {

// A copy between any two memories that nobody waits for: within one kind, to or from the host, or
// between two vendors through pinned host memory, a piece at a time. One thread at a time.
class PendingCopy {
 public:
  // Enqueues what it can and returns. dst.size must be at least src.size. Overlap is allowed on the
  // host, where it is finished at once.
  static Result<std::unique_ptr<PendingCopy>> start(const Region& dst, const Region& src);
  // Blocks between two devices of one kind, or one device and the host, as one.
  // `list` is the memory of batch.even, which goes back when the copy has ended.
  static Result<std::unique_ptr<PendingCopy>> startBatch(const CopyBatch& batch,
                                                         BorrowedBuffer list = nullptr);
  // The same through the host always, in the order in which no piece overwrites what is still to be
  // read: from the end when the destination lies above.
  static Result<std::unique_ptr<PendingCopy>> startStaged(const Region& dst, const Region& src,
                                                          bool fromTheEnd);
  // Destroyed before it has passed, the devices are still at it.
  ~PendingCopy();
  PendingCopy(const PendingCopy&) = delete;
  PendingCopy& operator=(const PendingCopy&) = delete;

  // Moves it along and says whether all bytes are in place. Never blocks.
  Result<bool> passed();

 private:
  // Copies in different directions use different engines of a device, and do not wait for each
  // other. Those of one direction take turns on two lanes: one copies while the other writes its
  // event.
  enum class Way : uint8_t { onDevice, toHost, fromHost };
  static uint8_t laneFor(Way way);
  // A queue of one device, and the event behind the copy that was enqueued there last.
  struct Side {
    Backend* backend;
    DeviceQueue queue;
    std::unique_ptr<DeviceEvent> event;
    static Result<Side> on(const Device& device, Way way);
    static Result<Side> between(const Device& to, const Device& from);
    Status enqueue(const Region& dst, const Region& src) const;
  };

  PendingCopy(const Region& dst, const Region& src) : dst_(dst), src_(src) {}
  Status enqueueRead();
  Status enqueueWrite();
  Result<bool> advance();
  // Where the piece that is under way begins.
  size_t offset() const { return fromTheEnd_ ? src_.size - done_ - piece_ : done_; }

  const Region dst_;
  const Region src_;
  std::optional<Side> from_;  // of a staged copy
  std::optional<Side> to_;    // of a staged copy, or of one that a device does by itself
  BorrowedBuffer buffer_;     // of a staged copy, or a list that the device reads
  bool fromTheEnd_ = false;
  bool writing_ = true;  // the piece has left the buffer, or never passes through it
  size_t piece_ = 0;     // bytes that are under way
  size_t done_ = 0;      // bytes that are in place
  Status failed_;        // some pieces were not enqueued; others may run
};

}  // namespace hmc
