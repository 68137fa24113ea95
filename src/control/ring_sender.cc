#include "control/ring_sender.h"

#include "base/error.h"

namespace hmc::control {

RingOutcome RingSender::tryWrite(MessageKind kind, uint16_t flags, std::string_view payload) {
  if (unfinished_ || payload.size() > kLargestRecord) return RingOutcome::notNow;
  return ring_.write({static_cast<uint8_t>(kind), flags}, payload);
}

Status RingSender::write(MessageKind kind, uint16_t flags, std::string_view payload,
                         Deadline deadline, const Full& full) {
  if (unfinished_) HMC_TRY(writeRecord(RingRecord{.abandoned = true}, {}, deadline, full));
  unfinished_ = false;
  do {
    std::string_view piece = payload.substr(0, kLargestRecord);
    payload.remove_prefix(piece.size());
    RingRecord record{static_cast<uint8_t>(kind), flags, !payload.empty()};
    HMC_TRY(writeRecord(record, piece, deadline, full));
    unfinished_ = !payload.empty();
  } while (!payload.empty());
  return Status();
}

Status RingSender::writeRecord(const RingRecord& record, std::string_view payload,
                               Deadline deadline, const Full& full) {
  for (;;) {
    uint32_t ticket = ring_.ticket();
    RingOutcome outcome = ring_.write(record, payload);
    if (outcome == RingOutcome::notNow) {
      ring_.announceWaiting();
      outcome = ring_.write(record, payload);
    }
    if (outcome == RingOutcome::done) return Status();
    if (outcome == RingOutcome::corrupt) return corrupt();
    if (deadline.passed()) {
      return error(Code::deadlineExceeded, "the message ring to {} was still full at the deadline",
                   who_);
    }
    HMC_TRY(full());
    ring_.waitForRoom(ticket, deadline);
  }
}

Status RingSender::corrupt() const {
  return error(Code::failed, "{} broke the protocol: it overwrote the message ring", who_);
}

}  // namespace hmc::control
