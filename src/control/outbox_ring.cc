#include <algorithm>

#include "base/error.h"
#include "control/outbox.h"

// The ring's half of Outbox.

namespace hmc::control {

bool Outbox::tryMessage(MessageKind kind, uint16_t flags, std::string_view payload) {
  if (kind == MessageKind::note || payload.size() > kLargestRecord) return false;
  Lock lock(mutex_);
  if (!ring_ || ringBusy_ || unfinished_ || !ended_.ok()) return false;
  return ring_->write({static_cast<uint8_t>(kind), flags}, payload) == RingOutcome::done;
}

Status Outbox::sendInRing(Lock& lock, MessageKind kind, uint16_t flags, std::string_view payload,
                          Deadline deadline) {
  while (ended_.ok() && ringBusy_) {
    if (deadline.passed()) {
      return error(Code::deadlineExceeded, "another thread was still sending to {} at the deadline",
                   who_);
    }
    changed_.wait_until(lock, deadline.at());
  }
  if (!ended_.ok()) return ended_;
  if (!unfinished_ && payload.size() <= kLargestRecord) {
    RingRecord record{static_cast<uint8_t>(kind), flags};
    RingOutcome outcome = ring_->write(record, payload);
    if (outcome == RingOutcome::done) return Status();
    if (outcome == RingOutcome::corrupt) return corruptRing();
  }
  ringBusy_ = true;
  lock.unlock();
  Status status = writeRecords(kind, flags, payload, deadline);
  lock.lock();
  ringBusy_ = false;
  changed_.notify_all();
  return status;
}

// With the ring's turn and without the lock.
Status Outbox::writeRecords(MessageKind kind, uint16_t flags, std::string_view payload,
                            Deadline deadline) {
  if (unfinished_) HMC_TRY(writeRecord(RingRecord{.abandoned = true}, {}, deadline));
  unfinished_ = false;
  do {
    std::string_view piece = payload.substr(0, kLargestRecord);
    payload.remove_prefix(piece.size());
    RingRecord record{static_cast<uint8_t>(kind), flags, !payload.empty()};
    HMC_TRY(writeRecord(record, piece, deadline));
    unfinished_ = !payload.empty();
  } while (!payload.empty());
  return Status();
}

Status Outbox::writeRecord(const RingRecord& record, std::string_view payload, Deadline deadline) {
  for (;;) {
    uint32_t ticket = ring_->ticket();
    RingOutcome outcome = ring_->write(record, payload);
    if (outcome == RingOutcome::notNow) {
      ring_->announceWaiting();
      outcome = ring_->write(record, payload);
    }
    if (outcome == RingOutcome::done) return Status();
    if (outcome == RingOutcome::corrupt) return corruptRing();
    HMC_TRY(status());
    if (deadline.passed()) {
      return error(Code::deadlineExceeded, "the message ring to {} was still full at the deadline",
                   who_);
    }
    // Its user may not be receiving; its control thread makes room.
    HMC_TRY(postFrame(FrameType::drain));
    ring_->waitForRoom(ticket, deadline);
  }
}

Status Outbox::corruptRing() const {
  return error(Code::failed, "{} broke the protocol: it overwrote the message ring", who_);
}

}  // namespace hmc::control
