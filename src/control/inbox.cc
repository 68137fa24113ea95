#include "control/inbox.h"

#include <sched.h>

#include <algorithm>

#include "base/error.h"
#include "base/futex.h"

namespace hmc {

namespace {

// Beyond this a peer floods us: its own back-pressure ends where our queues begin.
constexpr size_t kMostUnread = size_t{1} << 30;
constexpr size_t kQueueCost = sizeof(Message);
// How long a waiter watches the ring before it sleeps. Yields now and then: the producer may need
// this very core.
constexpr std::chrono::microseconds kSpin{30};

const char* kindName(MessageKind kind) {
  switch (kind) {
    case MessageKind::tag:
      return "tag";
    case MessageKind::integer:
      return "integer";
    case MessageKind::structure:
      return "structure";
    case MessageKind::bulkData:
      return "data";
    case MessageKind::bulkGrant:
      return "grant";
    case MessageKind::note:
      return "note";
  }
  return "message";
}

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

Status Inbox::push(Message message) {
  std::lock_guard lock(mutex_);
  HMC_TRY(queueLocked(std::move(message)));
  wakeLocked();
  return Status();
}

void Inbox::attachRing(std::shared_ptr<RingMemory> memory, int direction) {
  std::lock_guard lock(mutex_);
  ring_ = std::make_unique<RingReader>(std::move(memory), direction);
  signal_.fetch_add(1);
  futexWakeAll(signal_);
}

Status Inbox::drain() {
  std::lock_guard lock(mutex_);
  return drainLocked();
}

Status Inbox::drainLocked() {
  if (!ring_ || !corrupt_.ok() || !ring_->readable()) return corrupt_;
  RingRecord record;
  RingOutcome outcome = RingOutcome::done;
  bool moved = false;
  // One ring's worth at most: a producer that never pauses must not hold us here.
  for (size_t bytes = 0; bytes < kRingSize; bytes += 8) {
    size_t before = partial_.size();
    outcome = ring_->read(record, partial_);
    if (outcome != RingOutcome::done) break;
    moved = true;
    bytes += partial_.size() - before;
    corrupt_ = takeRecord(record);
    if (!corrupt_.ok()) break;
  }
  if (outcome == RingOutcome::corrupt) {
    corrupt_ =
        error(Code::failed, "{} broke the protocol: its message ring holds no records", who_);
  }
  if (moved) ring_->release();
  if (moved && waiters_ > 0) wakeLocked();
  return corrupt_;
}

Status Inbox::takeRecord(const RingRecord& record) {
  if (record.abandoned) {
    partial_.clear();
    return Status();
  }
  if (record.kind >= static_cast<uint8_t>(MessageKind::note)) {
    return error(Code::failed, "{} broke the protocol: a message of kind {} in its ring", who_,
                 record.kind);
  }
  if (partial_.size() > kLargestMessage) {
    return error(Code::failed, "{} broke the protocol: a message of more than {} bytes in its ring",
                 who_, kLargestMessage);
  }
  if (record.more) return Status();
  Message message{static_cast<MessageKind>(record.kind), record.flags, std::move(partial_)};
  partial_.clear();
  return queueLocked(std::move(message));
}

Status Inbox::queueLocked(Message message) {
  queuedBytes_ += kQueueCost + message.payload.size();
  if (queuedBytes_ > kMostUnread) {
    return error(Code::exhausted, "{} sent more than {} bytes of messages that nobody received",
                 who_, kMostUnread);
  }
  queues_[static_cast<size_t>(message.kind)].push_back(std::move(message));
  return Status();
}

void Inbox::wakeLocked() {
  std::atomic<uint32_t>& word = ring_ ? ring_->signal() : signal_;
  word.fetch_add(1);
  if (waiters_ > 0) futexWakeAll(word);
}

Result<Message> Inbox::receive(MessageKind kind, Deadline deadline) {
  auto& queue = queues_[static_cast<size_t>(kind)];
  std::unique_lock lock(mutex_);
  for (;;) {
    RingReader* ring = ring_.get();
    std::atomic<uint32_t>& word = ring ? ring->signal() : signal_;
    uint32_t seen = word.load();
    // The order of these four is the contract: what was sent before the end is read before it.
    Status drained = drainLocked();
    if (!queue.empty()) {
      Message message = std::move(queue.front());
      queue.pop_front();
      queuedBytes_ -= kQueueCost + message.payload.size();
      return message;
    }
    if (!ended_.ok()) return ended_;
    if (!drained.ok()) return drained;
    if (deadline.passed()) {
      return error(Code::deadlineExceeded, "no {} arrived from {} before the deadline",
                   kindName(kind), who_);
    }
    ++waiters_;
    lock.unlock();
    wait(word, seen, ring, deadline);
    lock.lock();
    --waiters_;
  }
}

bool Inbox::unread(MessageKind kind) {
  std::lock_guard lock(mutex_);
  drainLocked();
  return !queues_[static_cast<size_t>(kind)].empty();
}

bool Inbox::unread() {
  std::lock_guard lock(mutex_);
  drainLocked();
  return std::any_of(queues_.begin(), queues_.end(), [](const auto& q) { return !q.empty(); });
}

void Inbox::wait(std::atomic<uint32_t>& word, uint32_t seen, RingReader* ring, Deadline deadline) {
  if (ring) {
    auto until = Deadline::Clock::now() + kSpin;
    do {
      for (int i = 0; i < 64; ++i) {
        if (ring->readable() || word.load() != seen) return;
        relax();
      }
      sched_yield();
    } while (Deadline::Clock::now() < until);
    ring->announceSleeping();
    if (ring->readable()) return;
  }
  futexWait(word, seen, deadline);
}

Status Inbox::end(const Status& why) {
  std::lock_guard lock(mutex_);
  if (!ended_.ok()) return ended_;
  drainLocked();  // once is enough: it moves whatever a ring can hold
  ended_ = why;
  wakeLocked();
  return ended_;
}

Status Inbox::status() const {
  std::lock_guard lock(mutex_);
  return ended_;
}

}  // namespace hmc
