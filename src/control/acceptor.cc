#include "control/acceptor.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "control/security.h"
#include "control/tls_stream.h"

namespace hmc::control {

namespace {

constexpr std::chrono::milliseconds kAcceptPause{100};
// Channels and those that are in their handshake get on between two rounds of accepting.
constexpr int kAcceptsInARow = 4;
// While all places are taken: look again after this.
constexpr std::chrono::milliseconds kFullPause{2};
// A dialler's first word follows its connection at once; its second is a round trip later, from a
// host that may be busy.
constexpr std::chrono::milliseconds kSilentMoment{100};
constexpr std::chrono::milliseconds kGreetedMoment{1000};
// In a flood they are shorter: half for each time that so many have given way within a second, or
// that so long all places have been taken and nobody has got on.
constexpr size_t kFlood = 128;
constexpr std::chrono::milliseconds kStuck{10};
constexpr size_t kMostHalvings = 8;
constexpr std::chrono::milliseconds kLeastMoment{2};

}  // namespace

PendingConnection::PendingConnection(PendingOwner& owner, Loop& loop,
                                     std::unique_ptr<ByteStream> stream, SocketEnds ends,
                                     std::string where, AcceptorHandshake handshake)
    : owner_(owner),
      loop_(loop),
      stream_(std::move(stream)),
      ends_(std::move(ends)),
      where_(std::move(where)),
      handshake_(std::move(handshake)),
      patience_(loop) {}

Status PendingConnection::start(std::chrono::milliseconds patience) {
  HMC_ASSIGN(watch_, loop_.watch(stream_->fd(), EPOLLIN, [this](uint32_t) {
    inTls_ = !up_;
    readable();
  }));
  patience_.after(patience, [this, patience] {
    drop(error(Code::deadlineExceeded,
               "the connection from {} did not finish its handshake in {} ms", where_,
               patience.count()));
  });
  return Status();
}

bool PendingConnection::mayGiveWay(Loop::Clock::time_point now, size_t halvings) const {
  const auto moment = (challenged_ || inTls_ ? kGreetedMoment : kSilentMoment) / (1 << halvings);
  return !introduced_ && now - acceptedAt_ >= std::max(moment, kLeastMoment);
}

// In words that a dialler without TLS reads. What it has said is taken out of the socket: closed
// over unread bytes, that would take back the answer.
void PendingConnection::refusePlain() {
  char unread[4096];
  recv(stream_->fd(), unread, sizeof(unread), MSG_DONTWAIT);
  const std::string answer = frameBytes(FrameType::refused, encodeStatus(diallerIsPlain()));
  send(stream_->fd(), answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool PendingConnection::comeUp() {
  auto events = stream_->comeUp();
  if (events.ok()) {
    up_ = *events == 0;
    const bool sending = (*events & POLLOUT) != 0;
    sending ? watch_->want(EPOLLOUT) : watch_->ignore(EPOLLOUT);
    if (up_) handshake_.bind(stream_->binding());
    return up_;
  }
  tlsFailed_ = true;
  // TLS itself has told one that speaks it.
  if (events.status().code() == Code::unsupported) refusePlain();
  drop(events.status().within("the connection from " + where_));
  return false;
}

void PendingConnection::readable() {
  auto self = shared_from_this();
  if (!up_ && !comeUp()) return;
  char bytes[4096];
  while (watch_) {
    Moved moved = stream_->read(bytes, sizeof(bytes));
    if (moved.ended || moved.errnum != 0) {
      return drop(error(Code::disconnected,
                        "the connection from {} was closed before its handshake was over", where_));
    }
    if (moved.bytes == 0) break;
    Status status = takeBytes({bytes, moved.bytes});
    if (!status.ok()) return drop(status);
  }
}

Status PendingConnection::takeBytes(std::string_view bytes) {
  if (introduced_) {
    return error(Code::failed, "the connection from {} sent data before its handshake was answered",
                 where_);
  }
  if (!challenged_ && reader_.empty() && beginsTls(bytes)) {
    tlsFailed_ = true;
    refuse(diallerUsesTls());
    return Status();
  }
  if (!challenged_ && reader_.empty() && beginsOlderHello(bytes)) {
    Status why = error(
        Code::unsupported,
        "the dialler speaks a version of the control protocol before {}, and the peer {} to {}",
        kOldestVersion, kOldestVersion, kNewestVersion);
    write(olderRefusal(why));
    return why;
  }
  reader_.feed(bytes);
  while (watch_ && !introduced_) {
    HMC_ASSIGN(auto frame, reader_.next());
    if (!frame) return Status();
    HMC_TRY(takeFrame(*frame));
  }
  return Status();
}

Status PendingConnection::takeFrame(const Frame& frame) {
  if (!challenged_ && frame.type == FrameType::hello) {
    auto challenge = handshake_.takeHello(frame.payload);
    if (!challenge.ok()) {
      if (challenge.status().code() == Code::unsupported) refuse(challenge.status());
      return challenge.status();
    }
    challenged_ = true;
    say(FrameType::challenge, *challenge);
    return Status();
  }
  if (challenged_ && frame.type == FrameType::ident) {
    auto ident = handshake_.takeIdent(frame.payload);
    if (!ident.ok()) {
      refuse(ident.status());
      return ident.status();
    }
    ident_ = *std::move(ident);
    if (!reader_.empty()) {
      return error(Code::failed,
                   "the connection from {} sent data before its handshake was answered", where_);
    }
    introduced_ = true;
    owner_.introduced(shared_from_this());
    return Status();
  }
  return error(Code::failed,
               "the connection from {} sent a frame of type {} instead of its handshake", where_,
               static_cast<int>(frame.type));
}

// The handshake's frames are small and the socket's buffer empty: what does not fit goes to
// somebody who does not read, and is not worth a queue.
void PendingConnection::say(FrameType type, std::string_view payload) {
  write(frameBytes(type, payload));
}

void PendingConnection::write(std::string bytes) {
  iovec part{bytes.data(), bytes.size()};
  stream_->write({&part, 1});
}

void PendingConnection::yield() {
  say(FrameType::yield, {});
  drop(Status());
}

void PendingConnection::refuse(const Status& why) {
  if (!watch_) return;
  say(FrameType::refused, encodeStatus(why));
  drop(why);
}

std::unique_ptr<ByteStream> PendingConnection::take() {
  watch_.reset();
  patience_.cancel();
  auto stream = std::move(stream_);
  owner_.dropped(shared_from_this(), Status());
  return stream;
}

void PendingConnection::drop(const Status& why) {
  if (!watch_) return;
  auto self = shared_from_this();
  watch_.reset();
  patience_.cancel();
  stream_.reset();
  owner_.dropped(self, why);
}

Status Acceptor::add(std::unique_ptr<Listener> listener) {
  const std::string name = listener->address().toString();
  OpenListener& open = listeners_[name];
  auto watch = loop_.watch(listener->fd(), EPOLLIN, [this, &open](uint32_t) { acceptFrom(open); });
  if (!watch.ok()) {
    listeners_.erase(name);
    return watch.status();
  }
  open.listener = std::move(listener);
  open.watch = *std::move(watch);
  open.pause = std::make_unique<Loop::Timer>(loop_);
  return Status();
}

void Acceptor::closeAll(const Status& why) {
  listeners_.clear();
  const std::vector<std::shared_ptr<PendingConnection>> all(pending_.begin(), pending_.end());
  for (const auto& pending : all) pending->refuse(why);
}

void Acceptor::acceptFrom(OpenListener& open) {
  for (int i = 0; i < kAcceptsInARow; ++i) {
    if (!full()) gotOnAt_ = Loop::Clock::now();
    // The rest wait in the kernel.
    if (!makeRoom()) return pause(open, kFullPause);
    Listener::Accepted accepted = open.listener->accept();
    if ((accepted.errnum == EMFILE || accepted.errnum == ENFILE) && dropOldest()) continue;
    if (accepted.errnum != 0) {
      logWarn("accept at {}: {}; trying again in {} ms", open.listener->address().toString(),
              errnoText(accepted.errnum), kAcceptPause.count());
      return pause(open, kAcceptPause);
    }
    if (!accepted.socket) return;
    take(open.listener->address(), std::move(accepted.socket));
  }
}

void Acceptor::pause(OpenListener& open, std::chrono::milliseconds time) {
  open.watch->ignore(EPOLLIN);
  open.pause->after(time, [&open] { open.watch->want(EPOLLIN); });
}

bool Acceptor::makeRoom() {
  return !full() || dropOldest();
}

size_t Acceptor::halvings(Loop::Clock::time_point now) {
  for (; gaveWay_ > 0 && now - countedAt_ >= std::chrono::seconds(1);
       countedAt_ += std::chrono::seconds(1)) {
    gaveWay_ /= 2;
  }
  if (gaveWay_ == 0) countedAt_ = now;
  const auto stuck = static_cast<size_t>(std::max((now - gotOnAt_) / kStuck, int64_t{0}));
  return std::min(gaveWay_ / kFlood + stuck, kMostHalvings);
}

bool Acceptor::dropOldest() {
  const auto now = Loop::Clock::now();
  const size_t halvings = this->halvings(now);
  std::shared_ptr<PendingConnection> oldest;
  for (const auto& pending : pending_) {
    if (pending->mayGiveWay(now, halvings) &&
        (!oldest || pending->acceptedAt() < oldest->acceptedAt()))
      oldest = pending;
  }
  if (!oldest) return false;
  // We may be late to hear what it has said.
  oldest->readable();
  if (!oldest->mayGiveWay(now, halvings)) return makeRoom();
  gaveWay_ = std::min(gaveWay_ + 1, kFlood * kMostHalvings);
  oldest->refuse(error(Code::exhausted,
                       "{} connections wait for their handshake, which is the most: the oldest "
                       "gave way; try again",
                       inHandshake_));
  return true;
}

void Acceptor::take(const Address& at, Fd socket) {
  SocketEnds ends = endsOf(socket.get());
  std::string where =
      at.isUnix ? at.toString() : fmt::format("{}:{}", ends.remoteHost, ends.remotePort);
  const auto& tls = options_.tls;
  auto stream = tls ? acceptingTlsStream(std::move(socket), tls)
                    : Result<std::unique_ptr<ByteStream>>(socketStream(std::move(socket)));
  if (!stream.ok()) return logWarn("a connection was turned away: {}", stream.status().message());
  AcceptorHandshake handshake(secretFor(options_, ends), id_, options_.lease);
  auto pending = std::make_shared<PendingConnection>(static_cast<PendingOwner&>(*this), loop_,
                                                     *std::move(stream), std::move(ends),
                                                     std::move(where), std::move(handshake));
  Status status = pending->start(options_.handshake);
  if (!status.ok()) return logWarn("a connection was turned away: {}", status.message());
  pending_.insert(pending);
  ++inHandshake_;
  // Its first word is often there already.
  pending->readable();
}

void Acceptor::introduced(const std::shared_ptr<PendingConnection>& pending) {
  --inHandshake_;
  gotOnAt_ = Loop::Clock::now();
  owner_.introduced(pending);
  acceptMore();
}

void Acceptor::dropped(const std::shared_ptr<PendingConnection>& pending, const Status& why) {
  if (pending_.erase(pending) == 0) return;
  if (pending->tlsFailed() && !std::exchange(warned_, true)) {
    logWarn("{}; more of the kind are logged as debug", why.message());
  } else if (!why.ok()) {
    logDebug("{}", why.message());
  }
  owner_.dropped(pending, why);
  if (pending->isIntroduced()) return;
  --inHandshake_;
  acceptMore();
}

void Acceptor::acceptMore() {
  if (full()) return;
  for (auto& [name, open] : listeners_) open.watch->want(EPOLLIN);
}

}  // namespace hmc::control
