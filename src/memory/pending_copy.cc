#include "memory/pending_copy.h"

#include <algorithm>
#include <atomic>

#include "base/error.h"
#include "memory/backends.h"
#include "memory/host_copy.h"
#include "memory/range_error.h"

namespace hmc {

namespace {

Status check(const Region& dst, const Region& src) {
  if (dst.size < src.size) {
    return rangeError("copy", src.size, "", 0, dst.size);
  }
  if (src.size > 0 && (!dst.ptr || !src.ptr)) {
    return error(Code::invalidArgument, "a copy of {} bytes from {} to {} has a null pointer",
                 src.size, src.device.toString(), dst.device.toString());
  }
  return Status();
}

}  // namespace

uint8_t PendingCopy::laneFor(Way way) {
  static_assert(DeviceQueue::kLanes == 5);
  static std::atomic<uint8_t> turns[2];
  if (way == Way::onDevice) return 0;
  const uint8_t first = way == Way::toHost ? 1 : 3;
  return first + turns[first / 2].fetch_add(1, std::memory_order_relaxed) % 2;
}

Result<PendingCopy::Side> PendingCopy::Side::on(const Device& device, Way way) {
  HMC_ASSIGN(Backend * backend, findBackend(device));
  HMC_ASSIGN(auto event, backend->event(device.index));
  return Side{backend, {device, nullptr, laneFor(way)}, std::move(event)};
}

Result<PendingCopy::Side> PendingCopy::Side::between(const Device& to, const Device& from) {
  if (to.isHost()) return on(from, Way::toHost);
  return on(to, from.isHost() ? Way::fromHost : Way::onDevice);
}

Status PendingCopy::Side::enqueue(const Region& dst, const Region& src) const {
  HMC_TRY(backend->copyAll(dst, src, queue));
  return event->record(queue);
}

Result<std::unique_ptr<PendingCopy>> PendingCopy::start(const Region& dst, const Region& src) {
  HMC_TRY(check(dst, src));
  const bool toHost = dst.device.isHost();
  if (!toHost && !src.device.isHost() && dst.device.kind != src.device.kind) {
    return startStaged(dst, src, /*fromTheEnd=*/false);
  }
  std::unique_ptr<PendingCopy> copy(new PendingCopy(dst.slice(0, src.size), src));
  if (toHost && src.device.isHost()) {
    moveHost(dst.ptr, src.ptr, src.size);
    copy->done_ = src.size;
  }
  if (copy->done_ == src.size) return copy;
  HMC_ASSIGN(copy->to_, Side::between(dst.device, src.device));
  copy->piece_ = src.size;
  HMC_TRY(copy->to_->enqueue(copy->dst_, src));
  return copy;
}

Result<std::unique_ptr<PendingCopy>> PendingCopy::startBatch(const CopyBatch& batch,
                                                             BorrowedBuffer list) {
  const size_t total = batch.bytes;
  std::unique_ptr<PendingCopy> copy(new PendingCopy({batch.to.ptr, total, batch.to.device},
                                                    {batch.from.ptr, total, batch.from.device}));
  if (total == 0) return copy;
  HMC_ASSIGN(copy->to_, Side::between(batch.to.device, batch.from.device));
  const Side& side = *copy->to_;
  copy->piece_ = total;
  copy->buffer_ = std::move(list);
  copy->failed_ = side.backend->copy(batch, side.queue);
  // Of one block nothing runs.
  if (!copy->failed_.ok() && batch.blocks.size() == 1) return copy->failed_;
  Status recorded = side.event->record(side.queue);
  if (!recorded.ok()) return copy->failed_.ok() ? recorded : copy->failed_;
  return copy;
}

Result<std::unique_ptr<PendingCopy>> PendingCopy::startStaged(const Region& dst, const Region& src,
                                                              bool fromTheEnd) {
  HMC_TRY(check(dst, src));
  std::unique_ptr<PendingCopy> copy(new PendingCopy(dst.slice(0, src.size), src));
  HMC_ASSIGN(copy->to_, Side::on(dst.device, Way::fromHost));
  HMC_ASSIGN(copy->from_, Side::on(src.device, Way::toHost));
  HMC_ASSIGN(copy->buffer_, borrowBuffer());
  copy->buffer_->pinFor(*copy->to_->backend);
  copy->buffer_->pinFor(*copy->from_->backend);
  copy->fromTheEnd_ = fromTheEnd;
  if (src.size > 0) HMC_TRY(copy->enqueueRead());
  return copy;
}

PendingCopy::~PendingCopy() {
  // Nobody knows how long a device still reads or writes it.
  if (buffer_ && done_ < src_.size) {
    StagingBuffer::abandon(std::unique_ptr<StagingBuffer>(buffer_.release()));
  }
}

Status PendingCopy::enqueueRead() {
  writing_ = false;
  piece_ = std::min(buffer_->size(), src_.size - done_);
  return from_->enqueue(buffer_->region(piece_), src_.slice(offset(), piece_));
}

Status PendingCopy::enqueueWrite() {
  writing_ = true;
  return to_->enqueue(dst_.slice(offset(), piece_), buffer_->region(piece_));
}

// One step, if the device is done with the last one. True when it was.
Result<bool> PendingCopy::advance() {
  HMC_ASSIGN(const bool stepped, (writing_ ? to_ : from_)->event->passed());
  if (!stepped) return false;
  if (!writing_) {
    HMC_TRY(enqueueWrite());
    return true;
  }
  done_ += piece_;
  if (done_ < src_.size) HMC_TRY(enqueueRead());
  return true;
}

Result<bool> PendingCopy::passed() {
  while (done_ < src_.size) {
    HMC_ASSIGN(const bool stepped, advance());
    if (!stepped) return false;
  }
  if (!failed_.ok()) return failed_;
  return true;
}

}  // namespace hmc
