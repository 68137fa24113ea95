#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/loop.h"
#include "base/tls_context.h"
#include "control/byte_stream.h"
#include "control/control.h"
#include "control/frame.h"
#include "control/handshake.h"
#include "control/listener.h"

namespace hmc::control {

class PendingConnection;

// Who is told about connections that are in their handshake, on the control thread.
class PendingOwner {
 public:
  virtual ~PendingOwner() = default;
  // The dialler has said who it is and proved it. The owner answers with one of the last words, now
  // or later.
  virtual void introduced(const std::shared_ptr<PendingConnection>& pending) = 0;
  // It is gone: it hung up, took too long, broke the protocol, or got its last word.
  virtual void dropped(const std::shared_ptr<PendingConnection>& pending, const Status& why) = 0;
};

// A connection that came through a listener and is no channel yet: the accepting side of the
// handshake. Lives on the control thread.
class PendingConnection : public std::enable_shared_from_this<PendingConnection> {
 public:
  PendingConnection(PendingOwner& owner, Loop& loop, std::unique_ptr<ByteStream> stream,
                    SocketEnds ends, std::string where, AcceptorHandshake handshake);

  Status start(std::chrono::milliseconds patience);
  // Takes what has arrived.
  void readable();

  bool isIntroduced() const { return introduced_; }
  // May another take its place? One that has said nothing has little time for that, and less in a
  // flood.
  bool mayGiveWay(Loop::Clock::time_point now, size_t halvings) const;
  Loop::Clock::time_point acceptedAt() const { return acceptedAt_; }
  // It encrypted and we do not, or the other way round, or its keys do not fit ours.
  bool tlsFailed() const { return tlsFailed_; }
  const Ident& ident() const { return ident_; }
  const SocketEnds& ends() const { return ends_; }
  const std::string& where() const { return where_; }
  std::string credentials() const { return handshake_.credentials(); }
  bool hasSecret() const { return handshake_.hasSecret(); }
  std::chrono::milliseconds lease() const { return handshake_.lease(); }

  // The last words: one of them, once.
  void yield();
  void refuse(const Status& why);
  // It becomes a channel, which goes on with the stream.
  std::unique_ptr<ByteStream> take();

 private:
  // False while the stream is not up.
  bool comeUp();
  void refusePlain();
  Status takeBytes(std::string_view bytes);
  Status takeFrame(const Frame& frame);
  void say(FrameType type, std::string_view payload);
  void write(std::string bytes);
  void drop(const Status& why);

  PendingOwner& owner_;
  Loop& loop_;
  std::unique_ptr<ByteStream> stream_;
  const SocketEnds ends_;
  const std::string where_;
  AcceptorHandshake handshake_;
  FrameReader reader_{kLargestHandshake};
  std::unique_ptr<Loop::Watch> watch_;
  Loop::Timer patience_;
  Ident ident_;
  const Loop::Clock::time_point acceptedAt_ = Loop::Clock::now();
  bool inTls_ = false;  // the dialler has sent the beginning of TLS
  bool up_ = false;
  bool tlsFailed_ = false;
  bool challenged_ = false;
  bool introduced_ = false;
};

// The listeners of a Control and the connections that come through them, until each becomes a
// channel or goes. Lives on the control thread.
//
// Anybody can connect and say nothing. So there are few places for those that have not proven who
// they are, and when all are taken, the one that has been silent for longest gives way to the next.
// The more have to, and the longer nobody has got on, the less time each has: the rest wait in the
// kernel's queue, and behind them those who have something to say.
class Acceptor final : private PendingOwner {
 public:
  // `options` must outlive it.
  Acceptor(PendingOwner& owner, Loop& loop, std::string id, const ControlOptions& options)
      : owner_(owner), loop_(loop), id_(std::move(id)), options_(options) {}

  // Under its address.
  Status add(std::unique_ptr<Listener> listener);
  // False when there is no such listener.
  bool remove(const std::string& address) { return listeners_.erase(address) > 0; }
  void closeAll(const Status& why);
  bool holds(const std::shared_ptr<PendingConnection>& pending) const {
    return pending_.count(pending) > 0;
  }

 private:
  struct OpenListener {
    std::unique_ptr<Listener> listener;
    std::unique_ptr<Loop::Watch> watch;
    std::unique_ptr<Loop::Timer> pause;  // nothing can be accepted just now
  };

  void acceptFrom(OpenListener& open);
  void pause(OpenListener& open, std::chrono::milliseconds time);
  void take(const Address& at, Fd socket);
  // There is a place for another, if need be one that was freed now.
  bool makeRoom();
  bool dropOldest();
  size_t halvings(Loop::Clock::time_point now);
  void introduced(const std::shared_ptr<PendingConnection>& pending) override;
  void dropped(const std::shared_ptr<PendingConnection>& pending, const Status& why) override;
  bool full() const { return inHandshake_ >= kMostInHandshake; }
  void acceptMore();

  static constexpr size_t kMostInHandshake = 256;

  PendingOwner& owner_;
  Loop& loop_;
  const std::string id_;
  const ControlOptions& options_;
  bool warned_ = false;  // that somebody's TLS does not fit ours
  std::map<std::string, OpenListener> listeners_;
  std::set<std::shared_ptr<PendingConnection>> pending_;
  size_t inHandshake_ = 0;  // those that are not introduced
  size_t gaveWay_ = 0;      // lately
  Loop::Clock::time_point countedAt_;
  // When a place was free, or one of those who had them was introduced.
  Loop::Clock::time_point gotOnAt_;
};

}  // namespace hmc::control
