#include "control/inbox.h"

#include <sched.h>

#include <mutex>

#include "base/error.h"
#include "base/futex.h"
#include "control/message_window.h"

namespace hmc::control {

namespace {

// With this much unread a ring stays full, and its writer waits.
constexpr size_t kMuchUnread = kMessageWindow;
// A thread that waits for one kind moves the others out of its way, up to this.
constexpr size_t kMostUnread = 4 * kMuchUnread;
// How a waiter watches the ring: at first as fast as it can, for an answer that is on its way (a
// `pause` would take as long as the answer), then with courtesy, then it sleeps. It yields now and
// then: the producer may need this very core.
constexpr int kEagerLooks = 1000;
constexpr int kLooksPerYield = 64;
constexpr std::chrono::microseconds kSpin{30};
// The same for a socket.
constexpr std::chrono::microseconds kSourceSpin{50};
constexpr int kLooksPerSourceYield = 16;
constexpr int kLooksPerClock = 8;  // asking the time takes a fifth of a look

constexpr std::array<const char*, kMessageKinds> kKindNames = {"tag",     "integer", "structure",
                                                               "message", "message", "note"};

std::string kindNames(KindSet kinds) {
  std::string names;
  for (size_t i = 0; i < kMessageKinds; ++i) {
    if (kinds.has(static_cast<MessageKind>(i)))
      names += (names.empty() ? "" : " or ") + std::string(kKindNames[i]);
  }
  return names;
}

}  // namespace

Status Inbox::push(Message message) {
  std::lock_guard lock(mutex_);
  const size_t cost = messageCost(message.payload.size());
  if (pushedBytes_ + cost > kMessageWindow) {
    return error(Code::exhausted, "{} sent more than {} bytes of messages that nobody received",
                 who_, kMessageWindow);
  }
  HMC_TRY(queueLocked(std::move(message), true));
  pushedBytes_ += cost;
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
  return drainLocked(KindSet::all(), nullptr);
}

size_t Inbox::takenToTell() {
  return taken_.load(std::memory_order_relaxed) < kTellTaken ? 0 : taken_.exchange(0);
}

size_t Inbox::unreadBytes() const {
  std::lock_guard lock(mutex_);
  return queuedBytes_;
}

Status Inbox::drainLocked(KindSet wanted, std::optional<Message>* found) {
  if (!ring_ || !corrupt_.ok()) return corrupt_;
  RingRecord record;
  uint64_t before = arrived_;
  // One ring's worth at most: a producer that never pauses must not hold us here.
  for (size_t records = 0; records < kRingLines && corrupt_.ok(); ++records) {
    // The rest when some was taken. Who looks for a kind that may be behind goes on.
    if (!found) drainWanted_ = queuedBytes_ > kMuchUnread;
    if (!found && drainWanted_) break;
    RingOutcome outcome = ring_->read(record, partial_);
    if (outcome == RingOutcome::notNow) break;
    if (outcome == RingOutcome::corrupt) {
      corrupt_ =
          error(Code::failed, "{} broke the protocol: its message ring holds no records", who_);
      break;
    }
    corrupt_ = takeRecord(record, wanted, found);
    ring_->release();
    if (found && *found) break;
  }
  if (arrived_ != before && waiters_ > 0) wakeLocked();
  return corrupt_;
}

Status Inbox::takeRecord(const RingRecord& record, KindSet wanted, std::optional<Message>* found) {
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
  auto kind = static_cast<MessageKind>(record.kind);
  if (!found || !wanted.has(kind)) {
    Message message{kind, record.flags, std::move(partial_)};
    partial_.clear();
    return queueLocked(std::move(message), false);
  }
  Message& message = found->emplace();
  message.kind = kind;
  message.flags = record.flags;
  message.payload.swap(partial_);
  return Status();
}

Status Inbox::queueLocked(Message message, bool pushed) {
  queuedBytes_ += messageCost(message.payload.size());
  if (queuedBytes_ > kMostUnread) {
    return error(Code::exhausted, "{} sent more than {} bytes of messages that nobody received",
                 who_, kMostUnread);
  }
  Queue& queue = queues_[static_cast<size_t>(message.kind)];
  queue.push_back({++arrived_, std::move(message), pushed});
  return Status();
}

Inbox::Queue* Inbox::oldestLocked(KindSet kinds) {
  Queue* oldest = nullptr;
  if (queuedBytes_ == 0) return oldest;
  for (size_t i = 0; i < kMessageKinds; ++i) {
    if (queues_[i].empty() || !kinds.has(static_cast<MessageKind>(i))) continue;
    if (!oldest || queues_[i].front().order < oldest->front().order) oldest = &queues_[i];
  }
  return oldest;
}

// The queues are older than the ring.
std::optional<Message> Inbox::takeLocked(KindSet kinds) {
  Queue* queue = oldestLocked(kinds);
  std::optional<Message> found;
  if (!queue) {
    drainLocked(kinds, &found);
    return found;
  }
  found.emplace(std::move(queue->front().message));
  const size_t cost = messageCost(found->payload.size());
  if (queue->front().pushed) {
    pushedBytes_ -= cost;
    taken_.fetch_add(cost, std::memory_order_relaxed);
  }
  queue->pop_front();
  queuedBytes_ -= cost;
  if (drainWanted_) drainLocked(KindSet::all(), nullptr);
  return found;
}

void Inbox::wakeLocked() {
  std::atomic<uint32_t>& word = ring_ ? ring_->signal() : signal_;
  word.fetch_add(1);
  if (sleepers_.load() > 0) futexWakeAll(word);
}

Result<Message> Inbox::receive(KindSet kinds, Deadline deadline) {
  std::unique_lock lock(mutex_);
  for (;;) {
    RingReader* ring = ring_.get();
    std::atomic<uint32_t>& word = ring ? ring->signal() : signal_;
    uint32_t seen = word.load();
    // The order of these is the contract: what was sent before the end is read before it.
    if (auto message = takeLocked(kinds)) return *std::move(message);
    if (!ended_.ok()) return ended_;
    if (!corrupt_.ok()) return corrupt_;
    if (deadline.passed()) {
      return error(Code::deadlineExceeded, "no {} arrived from {} before the deadline",
                   kindNames(kinds), who_);
    }
    ++waiters_;
    lock.unlock();
    wait(word, seen, ring, deadline);
    lock.lock();
    --waiters_;
  }
}

// Holds the lock while it looks, so that nothing stands between the message and its receiver.
bool Inbox::tryReceive(MessageKind kind, void* data, size_t size) {
  std::lock_guard lock(mutex_);
  const bool straight = ring_ && queues_[static_cast<size_t>(kind)].empty() && partial_.empty();
  if (!straight || !corrupt_.ok() || !ended_.ok()) return false;
  for (int i = 0; i < kEagerLooks && !mutex_.wanted(); ++i) {
    if (ring_->readable()) return ring_->readShort(static_cast<uint8_t>(kind), data, size);
  }
  return false;
}

bool Inbox::unread(KindSet kinds) {
  std::lock_guard lock(mutex_);
  drainLocked(kinds, nullptr);
  return oldestLocked(kinds) != nullptr;
}

void Inbox::wait(std::atomic<uint32_t>& word, uint32_t seen, RingReader* ring, Deadline deadline) {
  if (!ring) return waitForSource(seen, deadline);
  auto somethingNew = [&] { return ring->readable() || word.load() != seen; };
  for (int i = 0; i < kEagerLooks; ++i) {
    if (somethingNew()) return;
  }
  auto until = Deadline::Clock::now() + kSpin;
  do {
    for (int i = 0; i < kLooksPerYield; ++i) {
      if (somethingNew()) return;
      relax();
    }
    sched_yield();
  } while (Deadline::Clock::now() < until);
  ++sleepers_;
  ring->announceSleeping();
  if (!ring->readable()) futexWait(word, seen, deadline);
  --sleepers_;
}

// A look is a system call, so that there is no more haste to be made than this.
void Inbox::waitForSource(uint32_t seen, Deadline deadline) {
  if (source_) {
    Deadline until = earlier(deadline, kSourceSpin);
    for (int i = 1; signal_.load() == seen; ++i) {
      if (!source_->look() || i % kLooksPerSourceYield == 0) sched_yield();
      if (i % kLooksPerClock == 0 && until.passed()) break;
    }
  }
  if (signal_.load() != seen) return;
  if (source_) source_->rest();
  ++sleepers_;
  futexWait(signal_, seen, deadline);
  --sleepers_;
  if (source_) source_->resume();
}

Status Inbox::end(const Status& why) {
  std::lock_guard lock(mutex_);
  if (!ended_.ok()) return ended_;
  drainLocked(KindSet::all(), nullptr);  // once is enough: it moves whatever a ring can hold
  ended_ = why;
  over_.store(true, std::memory_order_release);
  wakeLocked();
  return ended_;
}

Status Inbox::status() const {
  if (!over_.load(std::memory_order_acquire)) return Status();
  std::lock_guard lock(mutex_);
  return ended_;
}

}  // namespace hmc::control
