#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "control/message.h"
#include "control/ring.h"
#include "hmc/deadline.h"
#include "hmc/result.h"

namespace hmc {

// What a peer sent and nobody has asked for yet: a queue per kind, filled by the control thread
// from the socket and by whoever looks from the ring. Safe from any thread.
class Inbox {
 public:
  // `who` names the peer in sentences.
  explicit Inbox(std::string who) : who_(std::move(who)) {}

  // Not ok when the peer sent more than may lie here unread.
  Status push(Message message);
  // From now on the peer's messages come through the ring.
  void attachRing(std::shared_ptr<RingMemory> memory, int direction);
  // Moves the ring's records into the queues. Not ok when the ring is corrupt.
  Status drain();
  Result<Message> receive(MessageKind kind, Deadline deadline);
  bool unread(MessageKind kind);
  bool unread();

  // The reason of the end; what arrived before stays readable. Only the first counts, and that
  // one is answered.
  Status end(const Status& why);
  Status status() const;

 private:
  Status drainLocked();
  Status takeRecord(const RingRecord& record);
  Status queueLocked(Message message);
  void wakeLocked();
  void wait(std::atomic<uint32_t>& word, uint32_t seen, RingReader* ring, Deadline deadline);

  const std::string who_;
  // What waiters sleep on before there is a ring; then they sleep on the ring's word.
  std::atomic<uint32_t> signal_{0};

  // Guards everything below. The ring is destroyed last, so waiters may use it without the lock.
  mutable std::mutex mutex_;
  std::unique_ptr<RingReader> ring_;
  std::array<std::deque<Message>, kMessageKinds> queues_;
  size_t queuedBytes_ = 0;
  std::string partial_;  // records of a message whose last record has not come
  Status corrupt_;
  Status ended_;
  int waiters_ = 0;
};

}  // namespace hmc
