#pragma once

#include <memory>
#include <string>

#include "base/loop.h"
#include "control/byte_stream.h"
#include "control/frame.h"
#include "control/greeting.h"

namespace hmc {

class Visitor;

// What a visitor tells the Control whose listener it came through.
class VisitorHost {
 public:
  virtual ~VisitorHost() = default;
  // It has said who it is and proved it. The host answers with one of Visitor's last words, now or
  // later.
  virtual void introduced(const std::shared_ptr<Visitor>& visitor) = 0;
  // It is gone: it hung up, took too long, spoke nonsense, or had its last word.
  virtual void dropped(const std::shared_ptr<Visitor>& visitor, const Status& why) = 0;
};

// Somebody at a listener who has not become a channel yet: the accepting side of the greeting.
// Lives on the control thread.
class Visitor : public std::enable_shared_from_this<Visitor> {
 public:
  Visitor(VisitorHost& host, Loop& loop, std::unique_ptr<ByteStream> stream, SocketEnds ends,
          std::string where, AcceptorGreeting greeting);

  Status start(std::chrono::milliseconds patience);

  bool isIntroduced() const { return introduced_; }
  const Ident& ident() const { return ident_; }
  const SocketEnds& ends() const { return ends_; }
  const std::string& where() const { return where_; }

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

  VisitorHost& host_;
  Loop& loop_;
  std::unique_ptr<ByteStream> stream_;
  const SocketEnds ends_;
  const std::string where_;
  AcceptorGreeting greeting_;
  FrameReader reader_{kLargestGreeting};
  std::unique_ptr<Loop::Watch> watch_;
  Loop::Timer patience_;
  Ident ident_;
  bool challenged_ = false;
  bool introduced_ = false;
};

}  // namespace hmc
