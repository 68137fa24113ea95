#include "pool/parts.h"

#include <algorithm>

#include "base/error.h"
#include "memory/copy.h"

namespace hmc::pool {

bool DevicePart::done() {
  if (outcome_) return true;
  const auto passed = copy_->passed();
  if (!passed.ok()) outcome_ = passed.status();
  if (passed.ok() && *passed) outcome_ = Status();
  return outcome_.has_value();
}

Status DevicePart::wait(Deadline deadline) {
  if (done()) return *outcome_;
  const Status waited = waitFor(*copy_, deadline);
  return done() ? *outcome_ : waited;
}

Status DevicePart::cancel() {
  return wait(kCopyTimeout);
}

RelayPart::RelayPart(size_t element, Far from, Far to, uint64_t size,
                     std::shared_ptr<LocalMemory> buffer)
    : PoolCopyPart({{element, 1}}),
      from_(std::move(from)),
      to_(std::move(to)),
      size_(size),
      buffer_(std::move(buffer)) {
  for (size_t lane = 0; lane < kLanes; ++lane) begin(lane);
}

void RelayPart::fail(const Status& why) {
  if (failed_.ok()) failed_ = why;
}

void RelayPart::begin(size_t lane) {
  Lane& one = lanes_[lane];
  one.ticket.reset();
  if (next_ == size_ || !failed_.ok()) return;
  one.offset = next_;
  one.size = std::min<uint64_t>(kPiece, size_ - next_);
  one.sending = false;
  next_ += one.size;
  auto fetch = RemoteMapping::start(
      from_.memory, OpKind::get, buffer_,
      std::vector<Block>{{lane * kPiece, from_.offset + one.offset, one.size}});
  if (!fetch.ok()) return fail(fetch.status());
  one.ticket = *std::move(fetch);
}

// The lane's transfer has ended.
void RelayPart::advance(size_t lane) {
  Lane& one = lanes_[lane];
  const Status outcome = one.ticket->wait(Timeout(0));
  if (!outcome.ok()) {
    one.ticket.reset();
    return fail(outcome);
  }
  if (one.sending) return begin(lane);
  one.sending = true;
  auto send =
      RemoteMapping::start(to_.memory, OpKind::put, buffer_,
                           std::vector<Block>{{lane * kPiece, to_.offset + one.offset, one.size}});
  one.ticket.reset();
  if (!send.ok()) return fail(send.status());
  one.ticket = *std::move(send);
}

bool RelayPart::done() {
  bool idle = true;
  for (size_t lane = 0; lane < kLanes; ++lane) {
    while (lanes_[lane].ticket && lanes_[lane].ticket->done()) advance(lane);
    idle = idle && !lanes_[lane].ticket;
  }
  return idle;
}

Status RelayPart::wait(Deadline deadline) {
  while (!done()) {
    for (Lane& lane : lanes_) {
      if (!lane.ticket) continue;
      Status waited = lane.ticket->wait(deadline.left());
      if (!lane.ticket->over()) return waited;
      break;
    }
  }
  return failed_;
}

Status RelayPart::cancel() {
  if (done()) return failed_;
  fail(error(Code::cancelled, "the copy was cancelled"));
  for (Lane& lane : lanes_) {
    if (lane.ticket) (void)lane.ticket->cancel();
    lane.ticket.reset();
  }
  return failed_;
}

}  // namespace hmc::pool
