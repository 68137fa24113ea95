#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/loop.h"
#include "base/spin_lock.h"
#include "control/byte_stream.h"
#include "control/frame.h"
#include "control/message.h"
#include "control/ring.h"
#include "hmc/deadline.h"
#include "hmc/result.h"

namespace hmc::control {

// What goes to a peer, in order: straight to the socket or into the ring from the sender's own
// thread while there is room, else through a queue that the control thread empties. Safe from any
// thread. It begins corked: bytes are queued until uncork() has put the handshake's last frame in
// front of them.
class SendQueue {
 public:
  // `wantFlush` asks the control thread to call flush() when the socket takes bytes; it may be
  // called from any thread and under no lock. `who` names the peer in sentences.
  SendQueue(std::unique_ptr<ByteStream> stream, std::string who, Loop::Task wantFlush);

  // Through the ring where there is one. Waits for room until the deadline.
  Status sendMessage(MessageKind kind, uint16_t flags, std::string_view payload, Deadline deadline);
  // The same when it needs no waiting and no second look; else false, and nothing is sent.
  bool tryMessage(MessageKind kind, uint16_t flags, std::string_view payload);
  // Through the socket. Waits for room until the deadline.
  Status sendFrame(FrameType type, std::string_view head, std::string_view body, Deadline deadline);
  // The peer's user has taken so much of what sendMessage() sent through the socket.
  void taken(uint64_t cost);
  // Never waits: queues whatever does not go out at once.
  Status postFrame(FrameType type, std::string_view payload = {});

  void uncork(std::string_view first);
  // Messages go into the ring from now on; `marker` is the last frame before them.
  Status switchToRing(FrameType marker, std::shared_ptr<RingMemory> memory, int direction);

  enum class Flushed { everything, more, broken };
  Flushed flush();  // control thread

  // No more sends: they answer `why`, which must not be ok. With `goodbye`, that frame is the last
  // one. False when it had ended before.
  bool end(const Status& why, const std::string* goodbye);
  // Ok until end().
  Status status() const;
  // Gives the socket up; control thread.
  void disconnect();
  // For reading, with the SocketReader's turn, until disconnect().
  ByteStream& stream() { return *stream_; }

 private:
  using Lock = std::unique_lock<std::mutex>;

  Status sendOnSocket(Lock& lock, const FrameHeaderBytes& header, std::string_view head,
                      std::string_view body);
  // `cost` is that of a message, which also waits for the peer's user to receive earlier ones.
  Status waitForQueue(Lock& lock, Deadline deadline, size_t cost = 0);
  Status sendInRing(Lock& lock, MessageKind kind, uint16_t flags, std::string_view payload,
                    Deadline deadline);
  // In one record, if there is room for it now. notNow writes nothing.
  RingOutcome writeNow(MessageKind kind, uint16_t flags, std::string_view payload);
  // A long message in several records. One that is given up is taken back by the next.
  Status writeInRing(MessageKind kind, uint16_t flags, std::string_view payload, Deadline deadline);
  Status writeRecord(const RingRecord& record, std::string_view payload, Deadline deadline);
  Status corruptRing() const;

  const std::string who_;
  const Loop::Task wantFlush_;

  // Guards everything below but the ring's inside.
  mutable std::mutex mutex_;
  std::condition_variable changed_;     // room in the queue, the ring's turn, or the end
  std::unique_ptr<ByteStream> stream_;  // reset and read by the control thread only
  bool corked_ = true;
  std::deque<std::string> queue_;
  size_t sentOfFront_ = 0;
  size_t queuedBytes_ = 0;
  size_t unread_ = 0;  // cost of the messages that the peer's user has not taken
  Status ended_;

  // Taken after mutex_, or alone. Whoever changes these has both, so that either is enough to read
  // them. The ring's inside belongs to the holder while the ring is free, else to the thread that
  // made it busy.
  SpinLock ringLock_;
  std::optional<RingWriter> ring_;
  bool unfinished_ = false;  // a message was given up between two of its records
  bool ringFree_ = false;    // no thread is in the middle of a message, and nothing has ended
};

}  // namespace hmc::control
