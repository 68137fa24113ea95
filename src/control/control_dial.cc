#include "base/error.h"
#include "base/log.h"
#include "control/control_impl.h"
#include "control/socket.h"

// connect(): the dialling side of the greeting, in the caller's own thread.

namespace hmc {

namespace {

constexpr std::chrono::seconds kRingPatience{5};

struct OwnedFrame {
  FrameType type;
  std::string payload;
};

// Reads exactly one frame, so that nothing that follows it is lost.
Result<OwnedFrame> readFrame(ByteStream& stream, const std::string& who, Deadline deadline) {
  FrameReader reader(kLargestGreeting);
  std::string bytes(kFrameHeader, '\0');
  HMC_TRY(readAll(stream, bytes.data(), bytes.size(), who, deadline));
  auto type = static_cast<FrameType>(bytes[4]);
  reader.feed(bytes);
  for (;;) {
    auto frame = reader.next();
    if (!frame.ok()) return frame.status().within(who);
    if (*frame) return OwnedFrame{type, std::string((*frame)->payload)};
    bytes.resize(std::min(reader.missing(), size_t{4096}));
    HMC_TRY(readAll(stream, bytes.data(), bytes.size(), who, deadline));
    reader.feed(bytes);
  }
}

}  // namespace

struct ControlImpl::Dialled {
  std::unique_ptr<ByteStream> stream;
  std::string who;    // the address that was dialled
  std::string where;  // the same, as the channel's sentences say it
  std::string peerId;
  SocketEnds ends;
};

// While it lives, the control thread knows that we are dialling that peer.
class ControlImpl::DialMark {
 public:
  DialMark(ControlImpl& control, std::string peerId)
      : control_(control), peerId_(std::move(peerId)) {
    std::lock_guard lock(control_.mutex_);
    control_.dialling_.insert(peerId_);
    auto found = control_.table_.find(peerId_);
    bool connected = found != control_.table_.end() && found->second->status().ok();
    again_ = connected || control_.accepting_.count(peerId_) > 0;
  }
  ~DialMark() {
    {
      std::lock_guard lock(control_.mutex_);
      control_.dialling_.erase(control_.dialling_.find(peerId_));
    }
    control_.loop_->post([control = &control_, id = peerId_] { control->decideAgain(id); });
  }
  DialMark(const DialMark&) = delete;
  DialMark& operator=(const DialMark&) = delete;

  // There was a channel with that peer when we began, or it was about to be.
  bool again() const { return again_; }

 private:
  ControlImpl& control_;
  const std::string peerId_;
  bool again_ = false;
};

Result<std::shared_ptr<Channel>> ControlImpl::connect(const std::string& text,
                                                      const std::string& attributes,
                                                      Deadline deadline) {
  HMC_ASSIGN(Address address, parseAddress(text));
  if (loop_->onThread()) {
    return error(Code::failed, "connect to {} on the control thread, which would wait for itself",
                 text);
  }
  bool retry = false;
  auto channel = dialOnce(address, attributes, deadline, retry);
  if (!channel.ok() && retry) channel = dialOnce(address, attributes, deadline, retry);
  if (!channel.ok()) return channel.status();
  return std::shared_ptr<Channel>(*std::move(channel));
}

// `retry` is set when the peer pointed us to a channel that ended meanwhile.
Result<ControlImpl::ChannelPtr> ControlImpl::dialOnce(const Address& address,
                                                      const std::string& attributes,
                                                      Deadline deadline, bool& retry) {
  Dialled dialled;
  dialled.who = address.toString();
  HMC_ASSIGN(Fd socket, dial(address, deadline));
  dialled.ends = endsOf(socket.get());
  dialled.where = address.isUnix
                      ? dialled.who
                      : fmt::format("{}:{}", dialled.ends.remoteHost, dialled.ends.remotePort);
  dialled.stream = socketStream(std::move(socket));

  DiallerGreeting greeting(options_.secret, dialled.who);
  HMC_TRY(writeAll(*dialled.stream, frameBytes(FrameType::hello, greeting.hello()), dialled.who,
                   deadline));
  HMC_ASSIGN(auto answer, readFrame(*dialled.stream, dialled.who, deadline));
  if (answer.type == FrameType::refused) return decodeStatus(answer.payload).within(dialled.who);
  if (answer.type != FrameType::challenge) {
    return error(Code::failed, "{} does not speak this protocol", dialled.who);
  }
  HMC_ASSIGN(dialled.peerId, greeting.takeChallenge(answer.payload));

  DialMark mark(*this, dialled.peerId);
  Ident ident{id_, mark.again(), options_.name,
              attributes.empty() ? this->attributes() : attributes, hostId_};
  HMC_TRY(writeAll(*dialled.stream, frameBytes(FrameType::ident, greeting.ident(ident)),
                   dialled.who, deadline));
  HMC_ASSIGN(answer, readFrame(*dialled.stream, dialled.who, deadline));
  switch (answer.type) {
    case FrameType::welcome:
      return welcomed(dialled, answer.payload, deadline);
    case FrameType::yield: {
      ChannelPtr other = connectedTo(dialled.peerId);
      if (other) return other;
      retry = true;
      return error(Code::disconnected, "the channel to {} ended while it was dialled again",
                   dialled.who);
    }
    case FrameType::refused:
      return decodeStatus(answer.payload).within(dialled.who);
    default:
      return error(Code::failed, "{} does not speak this protocol", dialled.who);
  }
}

Result<ControlImpl::ChannelPtr> ControlImpl::welcomed(Dialled& dialled, std::string_view payload,
                                                      Deadline deadline) {
  HMC_ASSIGN(Welcome welcome, decodeWelcome(payload));
  ChannelFacts facts;
  facts.peer = {dialled.peerId, welcome.name, welcome.attributes};
  facts.initiator = true;
  facts.ends = dialled.ends;
  facts.where = dialled.where;
  facts.lease = options_.lease;
  bool offered = !welcome.token.empty();
  if (offered) {
    auto fd = FdExchange::fetch(welcome.exchange, welcome.token, earlier(deadline, kRingPatience));
    auto ring = fd.ok() ? RingMemory::attach(*fd) : fd.status();
    if (ring.ok()) facts.ring = *ring;
    if (!ring.ok()) logInfo("no message ring with {}: {}", dialled.who, ring.status().message());
  }
  std::string first = offered && !facts.ring ? frameBytes(FrameType::ringNo) : std::string();
  auto channel =
      ChannelImpl::create(loop_, *this, events_, std::move(dialled.stream), std::move(facts));
  Status status;
  loop_->run([&] {
    status = admitChannel(channel, first);
    if (status.ok()) return;
    channel->refuse(first + frameBytes(FrameType::bye, encodeStatus(status)), status);
  });
  if (!status.ok()) return status;
  return channel;
}

}  // namespace hmc
