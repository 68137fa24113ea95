#include "base/codec.h"
#include "base/error.h"
#include "base/text.h"
#include "control/channel_impl.h"
#include "control/handshake.h"
#include "control/message_window.h"

// What a channel does with the frames of its peer, on the control thread and with the turn to read.

namespace hmc::control {

namespace {
constexpr size_t kPingSize = 8;
constexpr size_t kTakenSize = 8;
}  // namespace

// Every byte from the peer is a sign of life, also those of a frame that is not complete.
Status ChannelImpl::take(std::string_view bytes) {
  if (!lease_->hear() && status().ok()) return silent();
  FrameReader& frames = socketReader_.frames();
  frames.feed(bytes);
  while (watch_ && !closing_) {
    auto next = frames.next();
    if (!next.ok()) return broke(next.status().message());
    if (!*next) return Status();
    HMC_TRY(handle(**next));
  }
  return Status();
}

Status ChannelImpl::handle(const Frame& frame) {
  switch (frame.type) {
    case FrameType::message:
      return handleMessage(frame);
    case FrameType::call:
      return handleCall(frame);
    case FrameType::answer:
      return handleAnswer(frame);
    case FrameType::ping: {
      if (frame.payload.size() != kPingSize) return broke("a malformed PING");
      Status posted = sendQueue_->postFrame(FrameType::pong, frame.payload);
      return posted.code() == Code::exhausted ? posted : Status();
    }
    case FrameType::pong: {
      if (frame.payload.size() != kPingSize) return broke("a malformed PONG");
      const uint64_t number = Reader(frame.payload).u64();
      if (timedProbe_ != 0 && number >= timedProbe_) {
        lease_->confirm(timedAt_);
        timedProbe_ = 0;
      }
      owner_.ponged(shared_from_this(), number);
      return Status();
    }
    case FrameType::taken:
      if (frame.payload.size() != kTakenSize) return broke("a malformed TAKEN");
      sendQueue_->taken(Reader(frame.payload).u64());
      return Status();
    case FrameType::bye:
      lease_->part();
      end(error(Code::disconnected, "{} closed the connection: {}", who_,
                decodeStatus(frame.payload).message()));
      return Status();
    case FrameType::ringReady:
    case FrameType::ringNo:
    case FrameType::ringSwitch:
    case FrameType::drain:
      return handleRing(frame);
    default:
      return broke(fmt::format("a frame of type {}", static_cast<int>(frame.type)));
  }
}

Status ChannelImpl::handleMessage(const Frame& frame) {
  if (frame.detail >= kMessageKinds)
    return broke(fmt::format("a message of kind {}", frame.detail));
  if (frame.payload.size() > kLargestMessage) return broke("a message that is too long");
  auto kind = static_cast<MessageKind>(frame.detail);
  if (kind == MessageKind::note) {
    const size_t cost = messageCost(frame.payload.size());
    if ((notesUnread_ += cost) > kMessageWindow) return broke("more notes than may lie unread");
    events_.note(shared_from_this(), std::string(frame.payload));
    return Status();
  }
  if (peerUsesRing_) return broke("a message beside its ring");
  return inbox_.push({kind, frame.flags, std::string(frame.payload)});
}

Status ChannelImpl::handleCall(const Frame& frame) {
  Reader reader(frame.payload);
  uint64_t number = reader.u64();
  uint16_t method = reader.u16();
  if (reader.failed()) return broke("a malformed CALL");
  auto request = reader.raw(reader.left());
  if (method == kJoinAgain) {
    const Status heard = events_.joinedAgain(shared_from_this(), std::string(request));
    sendAnswer(number, heard.ok() ? Result<std::string>(std::string()) : heard);
    return Status();
  }
  events_.answer(shared_from_this(), method, request,
                 [self = shared_from_this(), number](Result<std::string> answer) {
                   self->sendAnswer(number, std::move(answer));
                 });
  return Status();
}

void ChannelImpl::sendAnswer(uint64_t number, Result<std::string> answer) {
  if (answer.ok() && answer->size() > kLargestMessage) {
    answer = error(Code::outOfRange, "the answer has {} bytes, more than the {} that can travel",
                   answer->size(), kLargestMessage);
  }
  Writer writer;
  writer.u64(number).u8(static_cast<uint8_t>(answer.status().code()));
  writer.raw(answer.ok() ? *answer : answer.status().message());
  Status posted = sendQueue_->postFrame(FrameType::answer, writer.bytes());
  if (posted.code() == Code::exhausted) close(posted);
}

Status ChannelImpl::handleAnswer(const Frame& frame) {
  Reader reader(frame.payload);
  uint64_t number = reader.u64();
  uint8_t code = reader.u8();
  if (reader.failed()) return broke("a malformed ANSWER");
  std::string words(reader.raw(reader.left()));
  if (code == 0) {
    calls_.answer(number, std::move(words));
  } else {
    calls_.answer(number, Status(decodeCode(code), printable(words)));
  }
  return Status();
}

// The dialler's RING_READY and the acceptor's RING_SWITCH are the last word on the socket before
// the sender's messages go through the ring; whoever reads one looks into the ring from then on.
Status ChannelImpl::handleRing(const Frame& frame) {
  bool initiator = facts_.initiator;
  if (frame.type == FrameType::drain && peerUsesRing_) return inbox_.drain();
  if (!facts_.ring || peerUsesRing_) return broke("a word about a ring that is not there");
  if (frame.type == FrameType::ringReady && !initiator) {
    facts_.offer.reset();
    peerUsesRing_ = true;
    inbox_.attachRing(facts_.ring, kDiallerToAcceptor);
    sendQueue_->switchToRing(FrameType::ringSwitch, facts_.ring, kAcceptorToDialler);
    return Status();
  }
  if (frame.type == FrameType::ringNo && !initiator) {
    facts_.offer.reset();
    facts_.ring.reset();
    return Status();
  }
  if (frame.type == FrameType::ringSwitch && initiator) {
    peerUsesRing_ = true;
    inbox_.attachRing(facts_.ring, kAcceptorToDialler);
    return Status();
  }
  return broke("a word about the ring that is not its to say");
}

Status ChannelImpl::silent() const {
  return error(Code::disconnected, "heard nothing from {} for {:.1f} s", who_,
               std::chrono::duration<double>(lease_->length()).count());
}

Status ChannelImpl::broke(std::string_view how) const {
  return error(Code::failed, "{} broke the protocol: {}", who_, how);
}

}  // namespace hmc::control
