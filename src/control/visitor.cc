#include "control/visitor.h"

#include "base/error.h"

namespace hmc {

Visitor::Visitor(VisitorHost& host, Loop& loop, std::unique_ptr<ByteStream> stream, SocketEnds ends,
                 std::string where, AcceptorGreeting greeting)
    : host_(host),
      loop_(loop),
      stream_(std::move(stream)),
      ends_(std::move(ends)),
      where_(std::move(where)),
      greeting_(std::move(greeting)),
      patience_(loop) {}

Status Visitor::start(std::chrono::milliseconds patience) {
  HMC_ASSIGN(watch_, loop_.watch(stream_->fd(), EPOLLIN, [this](uint32_t) { readable(); }));
  patience_.after(patience, [this, patience] {
    drop(error(Code::deadlineExceeded, "the visitor from {} did not finish its greeting in {} ms",
               where_, patience.count()));
  });
  return Status();
}

void Visitor::readable() {
  auto self = shared_from_this();
  char bytes[4096];
  while (watch_) {
    Moved moved = stream_->read(bytes, sizeof(bytes));
    if (moved.ended || moved.errnum != 0) {
      return drop(error(Code::disconnected, "the visitor from {} hung up", where_));
    }
    if (moved.bytes == 0) break;
    Status status = takeBytes({bytes, moved.bytes});
    if (!status.ok()) return drop(status);
  }
}

Status Visitor::takeBytes(std::string_view bytes) {
  if (introduced_) {
    return error(Code::failed, "the visitor from {} spoke before it was answered", where_);
  }
  reader_.feed(bytes);
  while (watch_ && !introduced_) {
    HMC_ASSIGN(auto frame, reader_.next());
    if (!frame) return Status();
    HMC_TRY(takeFrame(*frame));
  }
  return Status();
}

Status Visitor::takeFrame(const Frame& frame) {
  if (!challenged_ && frame.type == FrameType::hello) {
    auto challenge = greeting_.takeHello(frame.payload);
    if (!challenge.ok()) {
      if (challenge.status().code() == Code::unsupported) refuse(challenge.status());
      return challenge.status();
    }
    challenged_ = true;
    say(FrameType::challenge, *challenge);
    return Status();
  }
  if (challenged_ && frame.type == FrameType::ident) {
    auto ident = greeting_.takeIdent(frame.payload);
    if (!ident.ok()) {
      refuse(ident.status());
      return ident.status();
    }
    ident_ = *std::move(ident);
    if (!reader_.empty()) {
      return error(Code::failed, "the visitor from {} spoke before it was answered", where_);
    }
    introduced_ = true;
    host_.introduced(shared_from_this());
    return Status();
  }
  return error(Code::failed, "the visitor from {} sent a frame of type {} instead of its greeting",
               where_, static_cast<int>(frame.type));
}

// The greeting's frames are small and the socket's buffer empty: what does not fit goes to somebody
// who does not read, and is not worth a queue.
void Visitor::say(FrameType type, std::string_view payload) {
  std::string bytes = frameBytes(type, payload);
  iovec part{bytes.data(), bytes.size()};
  stream_->write({&part, 1});
}

void Visitor::yield() {
  say(FrameType::yield, {});
  drop(Status());
}

void Visitor::refuse(const Status& why) {
  if (!watch_) return;
  say(FrameType::refused, encodeStatus(why));
  drop(why);
}

std::unique_ptr<ByteStream> Visitor::take() {
  watch_.reset();
  patience_.cancel();
  auto stream = std::move(stream_);
  host_.dropped(shared_from_this(), Status());
  return stream;
}

void Visitor::drop(const Status& why) {
  if (!watch_) return;
  auto self = shared_from_this();
  watch_.reset();
  patience_.cancel();
  stream_.reset();
  host_.dropped(self, why);
}

}  // namespace hmc
