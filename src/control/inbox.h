#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "base/spin_lock.h"
#include "control/message.h"
#include "control/ring.h"
#include "hmc/deadline.h"
#include "hmc/result.h"

namespace hmc::control {

// Where messages come from when they do not come through a ring, for a thread that waits. Safe from
// any thread.
class MessageSource {
 public:
  virtual ~MessageSource() = default;
  // Moves what has arrived into the inbox. False when somebody else is at it.
  virtual bool look() = 0;
  // The caller is about to sleep until somebody else has looked; resume() when it is awake.
  virtual void rest() = 0;
  virtual void resume() = 0;
};

// What a peer sent and nobody has asked for yet: a queue per kind, filled by the control thread
// from the socket and by whoever looks from the ring. Safe from any thread.
class Inbox {
 public:
  // `who` names the peer in sentences. `source` may be null: then push() is all there is.
  explicit Inbox(std::string who, MessageSource* source = nullptr)
      : who_(std::move(who)), source_(source) {}

  // From the socket. Not ok when the peer sent more than may lie here unread.
  Status push(Message message);
  // How much of what push() brought was taken, once it is worth telling the peer; else 0.
  size_t takenToTell();
  // What lies here unread takes about so much memory.
  size_t unreadBytes() const;
  // From now on the peer's messages come through the ring.
  void attachRing(std::shared_ptr<RingMemory> memory, int direction);
  // Moves the ring's records into the queues, unless much lies there: the peer then waits until
  // that is taken. Not ok when the ring is corrupt.
  Status drain();
  // The oldest message of those kinds.
  Result<Message> receive(KindSet kinds, Deadline deadline);
  // The same for a short one of `size` bytes from the ring: looks for as long as an answer takes,
  // without a clock. False says nothing about why.
  bool tryReceive(MessageKind kind, void* data, size_t size);
  bool unread(KindSet kinds = KindSet::all());

  // The reason of the end; what arrived before stays readable. Only the first counts, and that
  // one is answered.
  Status end(const Status& why);
  Status status() const;

 private:
  struct Queued {
    uint64_t order;  // of arrival, among all kinds
    Message message;
    bool pushed;  // came through push()
  };
  using Queue = std::deque<Queued>;

  Queue* oldestLocked(KindSet kinds);
  std::optional<Message> takeLocked(KindSet kinds);
  // Stops at the first message of `wanted`, which goes to `found` and into no queue.
  Status drainLocked(KindSet wanted, std::optional<Message>* found);
  Status takeRecord(const RingRecord& record, KindSet wanted, std::optional<Message>* found);
  Status queueLocked(Message message, bool pushed);
  void wakeLocked();
  void wait(std::atomic<uint32_t>& word, uint32_t seen, RingReader* ring, Deadline deadline);
  void waitForSource(uint32_t seen, Deadline deadline);

  const std::string who_;
  MessageSource* const source_;
  // What waiters sleep on before there is a ring; then they sleep on the ring's word.
  std::atomic<uint32_t> signal_{0};
  // Waiters that sleep or are about to. Each counts itself before it sleeps on the word, and who
  // changes the word looks here afterwards: one of the two sees the other.
  std::atomic<int> sleepers_{0};
  std::atomic<size_t> taken_{0};   // takenToTell()
  std::atomic<bool> over_{false};  // ended_ is set: spares status() the lock

  // Guards everything below. The ring is destroyed last, so waiters may use it without the lock.
  mutable SpinLock mutex_;
  std::unique_ptr<RingReader> ring_;
  std::array<Queue, kMessageKinds> queues_;
  uint64_t arrived_ = 0;
  size_t queuedBytes_ = 0;
  size_t pushedBytes_ = 0;    // of those, what came through push()
  bool drainWanted_ = false;  // drain() left records in the ring
  std::string partial_;       // records of a message whose last record has not come
  Status corrupt_;
  Status ended_;
  int waiters_ = 0;  // in wait(), asleep or not
};

}  // namespace hmc::control
