#include "control/channel_impl.h"

#include "base/codec.h"
#include "base/error.h"
#include "control/handshake.h"
#include "control/message_window.h"

namespace hmc::control {

namespace {

// How long a goodbye may take to reach a peer that reads slowly or not at all.
constexpr std::chrono::milliseconds kLinger{1000};
constexpr size_t kReadSize = size_t{64} << 10;
// How often the control thread asks whether a user's thread still reads in its place.
constexpr std::chrono::milliseconds kGuardEvery{2};
// One talkative channel must not keep the control thread from the others.
constexpr int kReadsInARow = 16;

std::string describe(const Identity& peer, const std::string& where) {
  return (peer.name.empty() ? "the peer" : peer.name) + " (" + where + ")";
}

}  // namespace

std::shared_ptr<ChannelImpl> ChannelImpl::create(std::shared_ptr<Loop> loop, ChannelOwner& owner,
                                                 ControlEvents& events,
                                                 std::unique_ptr<ByteStream> stream,
                                                 ChannelFacts facts) {
  std::shared_ptr<ChannelImpl> channel(
      new ChannelImpl(std::move(loop), owner, events, std::move(facts)));
  channel->sendQueue_ = std::make_unique<SendQueue>(std::move(stream), channel->who_,
                                                    channel->onLoop(&ChannelImpl::flush));
  if (channel->facts_.initiator && channel->facts_.ring) {
    channel->sendQueue_->switchToRing(FrameType::ringReady, channel->facts_.ring,
                                      kDiallerToAcceptor);
  }
  return channel;
}

ChannelImpl::ChannelImpl(std::shared_ptr<Loop> loop, ChannelOwner& owner, ControlEvents& events,
                         ChannelFacts facts)
    : loop_(std::move(loop)),
      owner_(owner),
      events_(events),
      facts_(std::move(facts)),
      who_(describe(facts_.peer, facts_.where)),
      lease_(std::make_shared<Lease>(facts_.lease)),
      inbox_(who_, facts_.ring ? nullptr : &socketReader_),
      calls_(who_),
      socketReader_(inbox_, lease_, onLoop(&ChannelImpl::readable), onLoop(&ChannelImpl::guard)) {}

// For tasks of other threads: those after the channel's end do nothing.
Loop::Task ChannelImpl::onLoop(void (ChannelImpl::*method)()) {
  return [this, method] {
    if (auto self = weak_from_this().lock())
      self->loop_->post([self, method] { ((*self).*method)(); });
  };
}

Status ChannelImpl::send(MessageKind kind, uint16_t flags, std::string_view payload,
                         Deadline deadline) {
  if (payload.size() > kLargestMessage) {
    return error(Code::invalidArgument, "a message of {} bytes to {}: {} is the most",
                 payload.size(), who_, kLargestMessage);
  }
  // The control thread makes the room that it would wait for.
  if (loop_->onThread()) deadline = Deadline::now();
  Status status = sendQueue_->sendMessage(kind, flags, payload, deadline);
  if (status.code() == Code::failed) close(status);  // the ring is corrupt
  return status;
}

Result<Message> ChannelImpl::receive(KindSet kinds, Deadline deadline) {
  Result<Message> result = inbox_.receive(kinds, deadline);
  if (const size_t taken = inbox_.takenToTell()) tellTaken(taken);
  if (!result.ok() && result.status().code() != Code::deadlineExceeded && status().ok()) {
    close(result.status());  // the ring is corrupt
  }
  return result;
}

void ChannelImpl::noteTaken(size_t size) {
  const size_t cost = messageCost(size);
  notesUnread_ -= cost;
  if ((notesTaken_ += cost) >= kTellTaken) tellTaken(notesTaken_.exchange(0));
}

void ChannelImpl::tellTaken(uint64_t cost) {
  (void)sendQueue_->postFrame(FrameType::taken, Writer().u64(cost).bytes());
}

Result<std::string> ChannelImpl::call(uint16_t method, std::string_view request, Deadline deadline,
                                      const std::stop_token& stop) {
  if (request.size() > kLargestMessage) {
    return error(Code::invalidArgument, "a call of {} bytes to {}: {} is the most", request.size(),
                 who_, kLargestMessage);
  }
  if (loop_->onThread()) {
    return error(Code::failed, "a call to {} on the control thread, which would wait for itself",
                 who_);
  }
  uint64_t number = calls_.begin();
  std::string head = Writer().u64(number).u16(method).take();
  Status sent = sendQueue_->sendFrame(FrameType::call, head, request, deadline);
  if (!sent.ok()) {
    calls_.forget(number);
    return sent;
  }
  socketReader_.rest();
  auto answer = calls_.wait(number, deadline, stop);
  socketReader_.resume();
  return answer;
}

void ChannelImpl::ask(uint16_t method, std::string_view request, Answered then) {
  // Answers are the control thread's to read; nobody shall keep the socket from it.
  socketReader_.rest();
  const uint64_t number = calls_.begin([this, then = std::move(then)](Result<std::string> answer) {
    socketReader_.resume();
    then(std::move(answer));
  });
  const std::string call = Writer().u64(number).u16(method).raw(request).take();
  Status posted = sendQueue_->postFrame(FrameType::call, call);
  if (!posted.ok()) calls_.answer(number, posted);
}

void ChannelImpl::close(const Status& why) {
  Status reason =
      why.ok() ? error(Code::disconnected, "this side closed the channel to {}", who_) : why;
  std::string goodbye = encodeStatus(why.ok() ? error(Code::disconnected, "closed") : why);
  if (!sendQueue_->end(reason, &goodbye)) return;
  lease_->revoke();
  inbox_.end(reason);
  calls_.end(reason);
  loop_->post([self = shared_from_this()] { self->finishClosing(); });
}

Status ChannelImpl::prepare() {
  HMC_ASSIGN(watch_, loop_->watch(sendQueue_->stream().fd(), EPOLLIN, [this](uint32_t ready) {
    auto self = shared_from_this();  // flush() may end the channel
    if ((ready & EPOLLOUT) != 0) flush();
    if ((ready & ~EPOLLOUT) != 0) readable();
  }));
  return Status();
}

void ChannelImpl::start(std::string_view first) {
  sendQueue_->uncork(first);
  socketReader_.begin(sendQueue_->stream(), facts_.ring ? nullptr : watch_.get());
  // The dialler's handshake read less than was there, and the socket will not tell.
  if (sendQueue_->stream().buffered())
    loop_->post([self = shared_from_this()] { self->readable(); });
}

void ChannelImpl::refuse(std::string_view last, const Status& why) {
  left_ = true;
  sendQueue_->end(why, nullptr);
  iovec part{const_cast<char*>(last.data()), last.size()};
  sendQueue_->stream().write({&part, 1});
  end(why);
}

void ChannelImpl::end(const Status& why) {
  if (closing_) return disconnect();
  // When close() was first, on another thread, its reason stands and its goodbye is on its way.
  if (!sendQueue_->end(why, nullptr) && !left_) return finishClosing();
  lease_->revoke();
  calls_.end(inbox_.end(why));  // for one that leave() does not tell of
  leave();
  disconnect();
}

void ChannelImpl::giveUp() {
  if (!status().ok()) return finishClosing();  // it was us who gave up
  givenUp_ = true;
  readable();
  if (watch_ && !closing_) hungUp();
}

// Our goodbye is queued. What the peer still sends is discarded, but read: a socket that is closed
// over unread bytes takes back those that it has sent.
void ChannelImpl::finishClosing() {
  if (closing_) return;
  closing_ = true;
  socketReader_.keep();
  leave();
  if (!watch_) return disconnect();
  linger_ = std::make_unique<Loop::Timer>(*loop_);
  linger_->after(kLinger, [this] { disconnect(); });
  flush();
}

// close() may still be on its way through the same steps, on another thread.
void ChannelImpl::leave() {
  if (left_) return;
  left_ = true;
  Status why = inbox_.end(sendQueue_->status());
  calls_.end(why);
  owner_.ended(shared_from_this(), why);
}

void ChannelImpl::disconnect() {
  if (gone_) return;
  gone_ = true;
  auto self = shared_from_this();
  facts_.offer.reset();
  socketReader_.stop();
  watch_.reset();
  linger_.reset();
  guardTimer_.reset();
  sendQueue_->disconnect();
  owner_.gone(self);
}

void ChannelImpl::flush() {
  if (!watch_) return;
  switch (sendQueue_->flush()) {
    case SendQueue::Flushed::everything:
      watch_->ignore(EPOLLOUT);
      if (closing_) sendQueue_->stream().finishWriting();
      return;
    case SendQueue::Flushed::more:
      watch_->want(EPOLLOUT);
      return;
    case SendQueue::Flushed::broken:
      // It may have said why before it went.
      readable();
      if (watch_) hungUp();
      return;
  }
}

void ChannelImpl::readable() {
  auto self = shared_from_this();
  bool outermost = !std::exchange(reading_, true);
  readAll();
  if (!outermost) return;
  reading_ = false;
  if (watch_ && !closing_) socketReader_.giveBack();
}

void ChannelImpl::readAll() {
  if (!watch_) return;
  if (socketReader_.take() && !closing_) {
    Status status = take({});
    if (!status.ok()) close(status);
  }
  char bytes[kReadSize];
  for (int i = 0; i < kReadsInARow; ++i) {
    if (!watch_) return;
    Moved moved = sendQueue_->stream().read(bytes, sizeof(bytes));
    if (moved.errnum != 0 || moved.ended) return hungUp();
    if (moved.bytes == 0) return;
    if (closing_) continue;
    Status status = take({bytes, moved.bytes});
    if (!status.ok()) close(status);
  }
}

void ChannelImpl::guard() {
  if (!watch_ || closing_) return;
  if (!guardTimer_) guardTimer_ = std::make_unique<Loop::Timer>(*loop_);
  guardTimer_->after(kGuardEvery, [this] {
    if (socketReader_.stillRead()) guard();
  });
}

void ChannelImpl::hungUp() {
  // A process that was stopped may find that its peer gave it up: that peer lives.
  if (status().ok() && !lease_->silent() && !givenUp_) vanished_ = true;
  const Status problem = watch_ ? sendQueue_->stream().problem() : Status();
  end(problem.ok() || problem.code() == Code::disconnected
          ? error(Code::disconnected,
                  "{} went away without a goodbye: its process ended or its host did", who_)
          : error(Code::disconnected, "the connection to {} broke: {}", who_, problem.message()));
  disconnect();  // also when end() only began to say goodbye: nobody is there
}

void ChannelImpl::beat() {
  if (closing_) return;
  if (lease_->expired() && status().ok()) {
    close(silent());
    return;
  }
  probe();
}

uint64_t ChannelImpl::probe() {
  ++probes_;
  if (timedProbe_ == 0) {
    timedProbe_ = probes_;
    timedAt_ = Lease::Clock::now();
  }
  Status status = sendQueue_->postFrame(FrameType::ping, Writer().u64(probes_).bytes());
  if (status.code() == Code::exhausted) close(status);
  return probes_;
}

}  // namespace hmc::control
