#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "base/fd_exchange.h"
#include "base/loop.h"
#include "control/byte_stream.h"
#include "control/calls.h"
#include "control/channel.h"
#include "control/control.h"
#include "control/frame.h"
#include "control/inbox.h"
#include "control/ring.h"
#include "control/send_queue.h"
#include "control/socket_reader.h"

namespace hmc::control {

class ChannelImpl;

// A call of Control's own: the peer has dialled again, with the attributes that follow.
inline constexpr uint16_t kJoinAgain = UINT16_MAX;

// What a channel tells the Control that it belongs to, on the control thread.
class ChannelOwner {
 public:
  virtual ~ChannelOwner() = default;
  // It is over; once, and only for a channel that was started.
  virtual void ended(const std::shared_ptr<ChannelImpl>& channel, const Status& why) = 0;
  // Its socket is closed and it calls its owner no more.
  virtual void gone(const std::shared_ptr<ChannelImpl>& channel) = 0;
  // The peer answered probe() number `number`.
  virtual void ponged(const std::shared_ptr<ChannelImpl>& channel, uint64_t number) = 0;
};

// Withdraws a descriptor offer when it goes.
class RingOffer {
 public:
  RingOffer(FdExchange& fds, std::string token) : fds_(fds), token_(std::move(token)) {}
  ~RingOffer() { fds_.withdraw(token_); }
  RingOffer(const RingOffer&) = delete;
  RingOffer& operator=(const RingOffer&) = delete;

 private:
  FdExchange& fds_;
  const std::string token_;
};

struct ChannelFacts {
  Identity peer;
  bool initiator = false;
  SocketEnds ends;
  std::string where;  // "127.0.0.1:5001" or "unix:///path", for sentences
  std::string credentials;
  bool proven = false;
  std::chrono::milliseconds lease;
  std::shared_ptr<RingMemory> ring;  // null when the two share no host
  std::unique_ptr<RingOffer> offer;  // on the accepting side
};

class ChannelImpl final : public Channel, public std::enable_shared_from_this<ChannelImpl> {
 public:
  static std::shared_ptr<ChannelImpl> create(std::shared_ptr<Loop> loop, ChannelOwner& owner,
                                             ControlEvents& events,
                                             std::unique_ptr<ByteStream> stream,
                                             ChannelFacts facts);

  const Identity& peer() const override { return facts_.peer; }
  bool initiator() const override { return facts_.initiator; }
  const std::string& localHost() const override { return facts_.ends.localHost; }
  const std::string& remoteHost() const override { return facts_.ends.remoteHost; }
  uint16_t remotePort() const override { return facts_.ends.remotePort; }
  const std::shared_ptr<Lease>& lease() const override { return lease_; }
  const std::string& credentials() const override { return facts_.credentials; }
  bool proven() const override { return facts_.proven; }
  Status status() const override { return inbox_.status(); }
  bool vanished() const override { return vanished_; }
  Status send(MessageKind kind, uint16_t flags, std::string_view payload,
              Deadline deadline) override;
  bool trySend(MessageKind kind, uint16_t flags, std::string_view payload) override {
    return sendQueue_->tryMessage(kind, flags, payload);
  }
  Result<Message> receive(KindSet kinds, Deadline deadline) override;
  bool tryReceive(MessageKind kind, void* data, size_t size) override {
    return inbox_.tryReceive(kind, data, size);
  }
  bool unread(KindSet kinds) const override { return inbox_.unread(kinds); }
  void noteTaken(size_t size) override;
  size_t unreadBytes() const override { return inbox_.unreadBytes(); }
  Result<std::string> call(uint16_t method, std::string_view request, Deadline deadline,
                           const std::stop_token& stop) override;
  void ask(uint16_t method, std::string_view request, Answered then) override;
  void close(const Status& why) override;

  // The rest belongs to the control thread.

  // All that can fail before start().
  Status prepare();
  // Begins to read and write; `first` goes out before anything that was sent meanwhile.
  void start(std::string_view first);
  // Instead of start(): says `last` to the peer and is no channel.
  void refuse(std::string_view last, const Status& why);
  // Ends a channel that its peer has stopped listening to, here and now.
  void end(const Status& why);
  // The same, after reading what the peer said last.
  void giveUp();
  // Looks at the lease, and asks for a sign of life.
  void beat();
  // Asks for one; the owner hears ponged() with this number.
  uint64_t probe();
  // Drops the socket without waiting for the goodbye to arrive.
  void disconnect();

 private:
  ChannelImpl(std::shared_ptr<Loop> loop, ChannelOwner& owner, ControlEvents& events,
              ChannelFacts facts);

  Loop::Task onLoop(void (ChannelImpl::*method)());
  void flush();
  void readable();
  void readAll();
  void guard();
  void hungUp();
  void finishClosing();
  void leave();
  Status take(std::string_view bytes);
  Status silent() const;
  Status handle(const Frame& frame);
  Status handleMessage(const Frame& frame);
  Status handleCall(const Frame& frame);
  void sendAnswer(uint64_t number, Result<std::string> answer);
  Status handleAnswer(const Frame& frame);
  Status handleRing(const Frame& frame);
  void tellTaken(uint64_t cost);
  Status broke(std::string_view how) const;

  const std::shared_ptr<Loop> loop_;
  ChannelOwner& owner_;
  ControlEvents& events_;
  ChannelFacts facts_;  // its offer belongs to the control thread
  const std::string who_;
  const std::shared_ptr<Lease> lease_;
  std::atomic<bool> vanished_{false};
  std::atomic<size_t> notesUnread_{0};  // their cost
  std::atomic<size_t> notesTaken_{0};   // of which the peer was not told
  mutable Inbox inbox_;                 // looking into it moves messages out of the ring
  Calls calls_;
  std::unique_ptr<SendQueue> sendQueue_;  // set by create()
  SocketReader socketReader_;

  // All below belong to the control thread.
  bool givenUp_ = false;                // the peer has another channel with us by now
  std::unique_ptr<Loop::Watch> watch_;  // of the socket; none: the channel is not started or over
  std::unique_ptr<Loop::Timer> guardTimer_;
  std::unique_ptr<Loop::Timer> linger_;
  uint64_t probes_ = 0;
  uint64_t timedProbe_ = 0;  // the one whose answer confirms the lease; 0: none is under way
  Lease::Clock::time_point timedAt_;
  bool peerUsesRing_ = false;
  bool reading_ = false;
  bool left_ = false;
  bool closing_ = false;  // we said goodbye: flushing, then discarding until the peer hangs up
  bool gone_ = false;
};

}  // namespace hmc::control
