#pragma once

#include <array>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/lease.h"
#include "transport/exports.h"
#include "transport/tcp/wire.h"

namespace hmc::tcp {

// One connection over which a peer asks. Bytes go from the socket straight into place, and from
// memory straight into the socket. Nothing here blocks on the peer, and nothing is allocated on its
// word. Only the holder of the service's mutex uses it.
class TargetStream {
 public:
  // Sends `greeting` first, if there is one.
  TargetStream(Fd fd, Exports& exports, Lease& lease, std::string greeting);

  int fd() const { return fd_.get(); }
  // Moves what the socket has and takes, for one turn; false when the stream is over.
  bool serve();
  // Whether the last turn moved anything.
  bool moved() const { return turnLeft_ != kTurn; }
  // Whether to serve again when the socket takes bytes (true) or has some (false).
  bool wantsToSend() const { return sending_ || !out_.empty(); }

 private:
  static constexpr size_t kTurn = size_t{4} << 20;  // bytes before other streams have their turn
  static constexpr size_t kSmall = 4096;  // answers that are copied instead of sent in place
  enum class Step { more, wait, over };

  bool requestReady() const;
  Step step();
  bool nextRequest();
  bool begin(const Request& request);
  Status check(const Request& request);
  Step receive();
  Step received(ssize_t got, size_t room);
  void place(const char* bytes, size_t size);
  void copySmall();
  Step sendData();
  Step flush();
  void finish();
  void answer(ReplyKind kind, uint64_t size, const Status& refusal = Status());
  OpKind opKind() const;
  Status gone() const;

  const Fd fd_;
  Exports& exports_;
  Lease& lease_;
  size_t turnLeft_ = 0;

  // What came and is not used yet: in_[inUsed_, inSize_).
  std::array<char, 16384> in_;
  size_t inUsed_ = 0;
  size_t inSize_ = 0;
  bool drained_ = false;  // the socket had no more than that
  // Small answers on their way, in front of a get's bytes.
  std::string out_;

  Request request_;                 // the one that is being served
  std::shared_ptr<Export> memory_;  // its memory; null when it is refused
  Status refusal_;
  uint64_t left_ = 0;  // bytes of it that have not moved
  bool sending_ = false;
};

}  // namespace hmc::tcp
