#pragma once

#include <memory>
#include <string>

#include "base/loop.h"
#include "control/byte_stream.h"
#include "control/frame.h"
#include "control/handshake.h"

namespace hmc::control {

// A connection that came through a listener and is no channel yet: the accepting side of the
// handshake. Lives on the control thread.
class PendingConnection : public std::enable_shared_from_this<PendingConnection> {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // The dialler has said who it is and proved it. The owner answers with one of the last words,
    // now or later.
    virtual void introduced(const std::shared_ptr<PendingConnection>& pending) = 0;
    // It is gone: it hung up, took too long, broke the protocol, or got its last word.
    virtual void dropped(const std::shared_ptr<PendingConnection>& pending, const Status& why) = 0;
  };

  PendingConnection(Owner& owner, Loop& loop, std::unique_ptr<ByteStream> stream, SocketEnds ends,
                    std::string where, AcceptorHandshake handshake);

  Status start(std::chrono::milliseconds patience);

  bool isIntroduced() const { return introduced_; }
  const Ident& ident() const { return ident_; }
  const SocketEnds& ends() const { return ends_; }
  const std::string& where() const { return where_; }
  std::string credentials() const { return handshake_.credentials(); }

  // The last words: one of them, once.
  void yield();
  void refuse(const Status& why);
  // It becomes a channel, which goes on with the stream.
  std::unique_ptr<ByteStream> take();

 private:
  void readable();
  Status takeBytes(std::string_view bytes);
  Status takeFrame(const Frame& frame);
  void say(FrameType type, std::string_view payload);
  void drop(const Status& why);

  Owner& owner_;
  Loop& loop_;
  std::unique_ptr<ByteStream> stream_;
  const SocketEnds ends_;
  const std::string where_;
  AcceptorHandshake handshake_;
  FrameReader reader_{kLargestHandshake};
  std::unique_ptr<Loop::Watch> watch_;
  Loop::Timer patience_;
  Ident ident_;
  bool challenged_ = false;
  bool introduced_ = false;
};

}  // namespace hmc::control
