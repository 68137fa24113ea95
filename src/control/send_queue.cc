#include "control/send_queue.h"

#include <algorithm>

#include "base/error.h"
#include "control/message_window.h"

namespace hmc::control {

namespace {

// A sender waits while this much is queued; the control thread, which cannot wait, gives up at
// several times that.
constexpr size_t kMostQueued = size_t{64} << 20;
constexpr size_t kFloodedAt = 4 * kMostQueued;

iovec part(std::string_view bytes) {
  return {const_cast<char*>(bytes.data()), bytes.size()};
}

}  // namespace

SendQueue::SendQueue(std::unique_ptr<ByteStream> stream, std::string who, Loop::Task wantFlush)
    : who_(std::move(who)), wantFlush_(std::move(wantFlush)), stream_(std::move(stream)) {}

// Ring or socket is decided in the same critical section as the sending: a message must not follow
// the marker of switchToRing() on the socket.
Status SendQueue::sendMessage(MessageKind kind, uint16_t flags, std::string_view payload,
                              Deadline deadline) {
  bool mayUseRing = kind != MessageKind::note;
  const size_t cost = messageCost(payload.size());
  Lock lock(mutex_);
  if (!mayUseRing || !ring_) HMC_TRY(waitForQueue(lock, deadline, cost));
  if (mayUseRing && ring_) return sendInRing(lock, kind, flags, payload, deadline);
  unread_ += cost;
  auto header = frameHeader(FrameType::message, static_cast<uint8_t>(kind), flags, payload);
  return sendOnSocket(lock, header, payload, {});
}

bool SendQueue::tryMessage(MessageKind kind, uint16_t flags, std::string_view payload) {
  if (kind == MessageKind::note) return false;
  std::lock_guard turn(ringLock_);
  return ringFree_ && writeNow(kind, flags, payload) == RingOutcome::done;
}

Status SendQueue::sendInRing(Lock& lock, MessageKind kind, uint16_t flags, std::string_view payload,
                             Deadline deadline) {
  while (ended_.ok() && !ringFree_) {
    if (deadline.passed()) {
      return error(Code::deadlineExceeded, "another thread was still sending to {} at the deadline",
                   who_);
    }
    changed_.wait_until(lock, deadline.at());
  }
  if (!ended_.ok()) return ended_;
  {
    std::lock_guard turn(ringLock_);
    const RingOutcome outcome = writeNow(kind, flags, payload);
    if (outcome == RingOutcome::done) return Status();
    if (outcome == RingOutcome::corrupt) return corruptRing();
    ringFree_ = false;
  }
  lock.unlock();
  Status status = writeInRing(kind, flags, payload, deadline);
  lock.lock();
  std::lock_guard turn(ringLock_);
  ringFree_ = ended_.ok();
  changed_.notify_all();
  return status;
}

RingOutcome SendQueue::writeNow(MessageKind kind, uint16_t flags, std::string_view payload) {
  if (unfinished_ || payload.size() > kLargestRecord) return RingOutcome::notNow;
  return ring_->write({static_cast<uint8_t>(kind), flags}, payload);
}

Status SendQueue::writeInRing(MessageKind kind, uint16_t flags, std::string_view payload,
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

Status SendQueue::writeRecord(const RingRecord& record, std::string_view payload,
                              Deadline deadline) {
  for (;;) {
    uint32_t ticket = ring_->ticket();
    RingOutcome outcome = ring_->write(record, payload);
    if (outcome == RingOutcome::notNow) {
      ring_->announceWaiting();
      outcome = ring_->write(record, payload);
    }
    if (outcome == RingOutcome::done) return Status();
    if (outcome == RingOutcome::corrupt) return corruptRing();
    if (deadline.passed()) {
      return error(Code::deadlineExceeded, "the message ring to {} was still full at the deadline",
                   who_);
    }
    // The peer's user may not be receiving: its control thread makes room. Fails once we have
    // ended.
    HMC_TRY(postFrame(FrameType::drain));
    ring_->waitForRoom(ticket, deadline);
  }
}

Status SendQueue::corruptRing() const {
  return error(Code::failed, "{} broke the protocol: it overwrote the message ring", who_);
}

Status SendQueue::sendFrame(FrameType type, std::string_view head, std::string_view body,
                            Deadline deadline) {
  auto header = frameHeader(type, 0, 0, head, body);
  Lock lock(mutex_);
  HMC_TRY(waitForQueue(lock, deadline));
  return sendOnSocket(lock, header, head, body);
}

Status SendQueue::postFrame(FrameType type, std::string_view payload) {
  Lock lock(mutex_);
  if (!ended_.ok()) return ended_;
  if (queuedBytes_ > kFloodedAt) {
    return error(Code::exhausted,
                 "{} does not read what it is sent: {} bytes are queued for it, {} is the most",
                 who_, queuedBytes_, kFloodedAt);
  }
  return sendOnSocket(lock, frameHeader(type, 0, 0, payload), payload, {});
}

void SendQueue::taken(uint64_t cost) {
  Lock lock(mutex_);
  unread_ -= std::min<uint64_t>(unread_, cost);
  changed_.notify_all();
}

Status SendQueue::waitForQueue(Lock& lock, Deadline deadline, size_t cost) {
  auto unreceived = [&] { return cost > 0 && unread_ + cost > kMessageWindow; };
  while (ended_.ok() && (queuedBytes_ > kMostQueued || unreceived())) {
    if (deadline.passed() && unreceived()) {
      return error(Code::deadlineExceeded,
                   "{} had not received {} bytes of earlier messages at the deadline, and {} is "
                   "the most that may wait there",
                   who_, unread_, kMessageWindow);
    }
    if (deadline.passed()) {
      return error(Code::deadlineExceeded, "{} bytes for {} were still queued at the deadline",
                   queuedBytes_, who_);
    }
    changed_.wait_until(lock, deadline.at());
  }
  return ended_;
}

// One system call while nothing is queued. On a broken connection the bytes are queued as well, so
// that flush() meets the same error and the control thread learns of it.
Status SendQueue::sendOnSocket(Lock& lock, const FrameHeaderBytes& header, std::string_view head,
                               std::string_view body) {
  std::string_view parts[] = {{header.data(), header.size()}, head, body};
  Moved moved;
  if (!corked_ && queue_.empty()) {
    iovec list[] = {part(parts[0]), part(parts[1]), part(parts[2])};
    moved = stream_->write(list);
  }
  std::string rest;
  size_t done = moved.bytes;
  for (auto piece : parts) {
    size_t skip = std::min(done, piece.size());
    done -= skip;
    rest.append(piece.substr(skip));
  }
  if (rest.empty()) return Status();
  bool first = queue_.empty() && !corked_;
  queuedBytes_ += rest.size();
  queue_.push_back(std::move(rest));
  lock.unlock();
  if (first) wantFlush_();
  if (moved.errnum != 0) return errnoStatus(who_ + " is gone", moved.errnum);
  return Status();
}

void SendQueue::uncork(std::string_view first) {
  Lock lock(mutex_);
  corked_ = false;
  if (!first.empty()) {
    queuedBytes_ += first.size();
    queue_.push_front(std::string(first));
  }
  lock.unlock();
  wantFlush_();
}

Status SendQueue::switchToRing(FrameType marker, std::shared_ptr<RingMemory> memory,
                               int direction) {
  Lock lock(mutex_);
  if (!ended_.ok()) return ended_;
  {
    std::lock_guard turn(ringLock_);
    ring_.emplace(std::move(memory), direction);
    ringFree_ = true;
  }
  return sendOnSocket(lock, frameHeader(marker, 0, 0, {}), {}, {});
}

SendQueue::Flushed SendQueue::flush() {
  Lock lock(mutex_);
  if (!stream_ || corked_) return Flushed::everything;
  while (!queue_.empty()) {
    std::string_view rest = std::string_view(queue_.front()).substr(sentOfFront_);
    iovec one = part(rest);
    Moved moved = stream_->write({&one, 1});
    if (moved.errnum != 0) return Flushed::broken;
    queuedBytes_ -= moved.bytes;
    sentOfFront_ += moved.bytes;
    if (moved.bytes < rest.size()) return Flushed::more;
    queue_.pop_front();
    sentOfFront_ = 0;
    if (queuedBytes_ <= kMostQueued) changed_.notify_all();
  }
  return Flushed::everything;
}

bool SendQueue::end(const Status& why, const std::string* goodbye) {
  Lock lock(mutex_);
  if (!ended_.ok()) return false;
  ended_ = why;
  {
    std::lock_guard turn(ringLock_);
    ringFree_ = false;
  }
  if (ring_) ring_->wakeWaiter();
  changed_.notify_all();
  if (!goodbye) return true;
  auto header = frameHeader(FrameType::bye, 0, 0, *goodbye);
  sendOnSocket(lock, header, *goodbye, {});
  return true;
}

void SendQueue::disconnect() {
  Lock lock(mutex_);
  stream_.reset();
  queue_.clear();
  queuedBytes_ = 0;
}

Status SendQueue::status() const {
  Lock lock(mutex_);
  return ended_;
}

}  // namespace hmc::control
