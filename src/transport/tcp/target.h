#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>

#include "base/lease.h"
#include "transport/exports.h"
#include "transport/tcp/connection.h"
#include "transport/tcp/wire.h"

namespace hmc::tcp {

// One connection over which a peer asks. Bytes go from the socket straight into place, and from
// memory straight into the socket. Nothing here blocks on the peer, and nothing is allocated on its
// word. Only the service's thread uses it.
class TargetStream {
 public:
  // Where a stream reads requests; most of them wait without one.
  using Buffer = std::array<char, 16384>;

  // Sends `greeting` first, if there is one, and `farewell` last. `spare` outlives it: a buffer
  // that no stream needs now, if there is one. With `altered` everything has checksums, and what
  // does not fit its own is counted there.
  TargetStream(Connection connection, Exports& exports, Lease& lease, std::string greeting,
               std::string farewell, std::unique_ptr<Buffer>& spare,
               std::atomic<uint64_t>* altered = nullptr);
  ~TargetStream();

  int fd() const { return connection_.get(); }
  // There is something to serve that the socket will not tell of.
  bool buffered() const { return connection_.buffered(); }
  // Moves what the socket has and takes, for one turn; false when the stream is over.
  bool serve();
  // Whether the last turn moved anything.
  bool moved() const { return turnLeft_ != kTurn; }
  // Whether the last turn moved, or has left to move, as much as makes another stream worthwhile.
  bool busy() const { return kTurn - turnLeft_ + left_ >= kBusy; }
  // Whether to serve again when the socket takes bytes (true) or has some (false).
  bool wantsToSend() const { return (sending_ || !out_.empty()) && !connection_.awaitsPeer(); }

 private:
  static constexpr size_t kTurn = size_t{4} << 20;  // bytes before other streams have their turn
  static constexpr size_t kBusy = size_t{256} << 10;
  static constexpr size_t kSmall = 4096;      // answers that are copied instead of sent in place
  static constexpr size_t kLookAhead = 1024;  // bytes read behind a put's own
  // What a process may apply that was stopped between looking at its lease and receiving.
  static constexpr size_t kMostAtOnce = size_t{256} << 10;
  static constexpr size_t kMostUnanswered = size_t{256} << 10;  // bytes before answers leave
  enum class Step { more, wait, over };

  bool serveTurn();
  bool requestReady() const;
  bool isComplete(const char* request, size_t have) const;
  Step step();
  bool nextRequest();
  bool begin(const Request& request);
  Status check(const Request& request);
  Step receive();
  Step receiveInPlace();
  Step received(ssize_t got, size_t room, size_t roomInPlace);
  void takePut();
  void verify(uint32_t expected);
  void place(const char* bytes, size_t size);
  void copySmall();
  Step sendData();
  Step flush();
  void finish();
  void answer(ReplyKind kind, uint64_t size, const Status& refusal = Status());
  void addTrailer(uint32_t crc);
  void countAltered() const { altered_->fetch_add(1, std::memory_order_relaxed); }
  OpKind opKind() const;
  Status gone() const;
  Status unusable() const;

  Connection connection_;
  Exports& exports_;
  Lease& lease_;
  const std::string farewell_;
  std::atomic<uint64_t>* const altered_;  // null: without checksums
  size_t turnLeft_ = 0;

  // What came and is not used yet: in_[inUsed_, inSize_).
  std::unique_ptr<Buffer>& spare_;
  std::unique_ptr<Buffer> in_;  // null between turns, unless something is in it
  size_t inUsed_ = 0;
  size_t inSize_ = 0;
  bool drained_ = false;   // the socket had no more than that
  size_t unanswered_ = 0;  // bytes that came since answers left
  // Small answers on their way, in front of a get's bytes.
  std::string out_;

  Request request_;                 // the one that is being served
  std::shared_ptr<Export> memory_;  // its memory; null when it is refused
  Status refusal_;
  uint64_t left_ = 0;        // bytes of it that have not moved
  uint32_t sum_ = 0;         // of those that have
  bool putting_ = false;     // a put has not come as a whole
  bool sending_ = false;     // a get has not left as a whole
  bool unreadable_ = false;  // a get's memory: zeros go out in its place
};

}  // namespace hmc::tcp
