#include "control/control.h"

#include <algorithm>

#include "base/environment.h"
#include "base/error.h"
#include "base/host_id.h"
#include "base/log.h"
#include "base/random.h"
#include "control/control_impl.h"
#include "control/security.h"
#include "control/socket.h"

namespace hmc::control {

namespace {
// How long the destructor waits for goodbyes to be delivered.
constexpr std::chrono::milliseconds kFarewell{1000};
constexpr std::chrono::seconds kRingPatience{5};
}  // namespace

namespace {

Result<std::unique_ptr<Control>> createControl(const ControlOptions& options, FdExchange* fds,
                                               ControlEvents& events) {
  if (options.heartbeat.count() <= 0 || options.lease <= options.heartbeat ||
      options.handshake.count() <= 0) {
    return error(Code::invalidArgument,
                 "a heartbeat of {} ms, a lease of {} ms and a handshake of {} ms: all must be "
                 "positive and the lease longer than the heartbeat",
                 options.heartbeat.count(), options.lease.count(), options.handshake.count());
  }
  HMC_ASSIGN(auto loop, Loop::create("hmc-control"));
  return std::unique_ptr<Control>(new ControlImpl(options, fds, events, std::move(loop)));
}

}  // namespace

Result<std::unique_ptr<Control>> Control::create(const ControlOptions& options, FdExchange& fds,
                                                 ControlEvents& events) {
  return createControl(options, &fds, events);
}

Result<std::unique_ptr<Control>> Control::create(const ControlOptions& options,
                                                 ControlEvents& events) {
  return createControl(options, nullptr, events);
}

ControlImpl::ControlImpl(ControlOptions options, FdExchange* fds, ControlEvents& events,
                         std::shared_ptr<Loop> loop)
    : options_(std::move(options)),
      fds_(fds),
      events_(events),
      id_(randomBytes(kIdSize)),
      hostId_(options_.ring && fds_ ? hostId() : std::string()),
      loop_(std::move(loop)),
      acceptor_(*this, *loop_, id_, options_),
      beat_(*loop_) {
  loop_->run([this] { beat(); });
}

ControlImpl::~ControlImpl() {
  loop_->run([this] {
    held_.clear();
    acceptor_.closeAll(error(Code::disconnected, "the peer is closing"));
    for (const auto& channel : channels_)
      channel->close(error(Code::disconnected, "it is closing"));
  });
  Deadline deadline = kFarewell;
  {
    std::unique_lock lock(mutex_);
    noSockets_.wait_until(lock, deadline.at(), [this] { return sockets_ == 0; });
  }
  loop_->run([this] {
    beat_.cancel();
    for (const auto& channel : std::vector<ChannelPtr>(channels_.begin(), channels_.end())) {
      channel->end(error(Code::disconnected, "this side is closing"));
    }
  });
  loop_->stop();
}

void ControlImpl::setAttributes(std::string attributes) {
  std::lock_guard lock(mutex_);
  attributes_ = std::move(attributes);
}

std::string ControlImpl::attributes() const {
  std::lock_guard lock(mutex_);
  return attributes_;
}

Result<std::string> ControlImpl::listen(const std::string& text) {
  HMC_ASSIGN(Address address, parseAddress(text));
  // Once: what is checked is what is listened at.
  HMC_ASSIGN(const Meanings meanings, resolve(address, options_.resolver));
  HMC_ASSIGN(const bool open, checkListener(options_, address, meanings));
  HMC_ASSIGN(auto listener, Listener::open(address, meanings));
  if (open && !warned_.exchange(true)) {
    logWarn(
        "{} listens at {} without a secret: everybody who reaches it can read and write what is "
        "registered here; set {} to the same value in all processes",
        options_.name.empty() ? "this process" : options_.name, text, variable::kSecret.name);
  }
  std::string name = listener->address().toString();
  Status status;
  loop_->run([&] { status = acceptor_.add(std::move(listener)); });
  if (!status.ok()) return status;
  return name;
}

Status ControlImpl::closeListener(const std::string& text) {
  HMC_ASSIGN(Address address, parseAddress(text));
  bool closed = false;
  loop_->run([&] { closed = acceptor_.remove(address.toString()); });
  if (!closed) return error(Code::notFound, "no listener is open at {}", text);
  return Status();
}

ControlImpl::ChannelPtr ControlImpl::connectedTo(const std::string& peerId) const {
  std::lock_guard lock(mutex_);
  auto found = table_.find(peerId);
  return found != table_.end() && found->second->status().ok() ? found->second : nullptr;
}

// While it lives, the control thread knows that we are dialling that peer.
class ControlImpl::DialMark {
 public:
  DialMark(ControlImpl& control, std::string peerId)
      : control_(control), peerId_(std::move(peerId)) {
    std::lock_guard lock(control_.mutex_);
    control_.dialling_.insert(peerId_);
    auto found = control_.table_.find(peerId_);
    bool connected = found != control_.table_.end() && found->second->status().ok();
    if (connected) control_.saidAgain_.insert(peerId_);
    saidAgain_ = connected;
    again_ = connected || control_.accepting_.count(peerId_) > 0;
  }
  ~DialMark() {
    {
      std::lock_guard lock(control_.mutex_);
      control_.dialling_.erase(control_.dialling_.find(peerId_));
      if (saidAgain_) control_.saidAgain_.erase(control_.saidAgain_.find(peerId_));
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
  bool saidAgain_ = false;  // because of a channel
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
  HMC_ASSIGN(Dialler dialler, Dialler::dial(address, options_, deadline));
  DialMark mark(*this, dialler.peerId());
  Ident ident{id_, mark.again(), options_.name,
              attributes.empty() ? this->attributes() : attributes, hostId_};
  HMC_ASSIGN(auto welcome, dialler.introduce(ident, deadline));
  if (welcome) return open(dialler, *welcome, deadline);
  if (ChannelPtr other = connectedTo(dialler.peerId())) {
    // Through the channel, which nobody else has: who dials may say that it is anybody.
    const auto told = other->call(kJoinAgain, ident.attributes, deadline, {});
    if (told.ok()) return other;
    if (other->status().ok()) return told.status();
  }
  retry = true;
  return error(Code::disconnected, "the channel to {} ended while it was dialled again",
               dialler.who());
}

template <class Handshaken>
ChannelFacts ControlImpl::factsOf(const Handshaken& connection, Identity peer) const {
  ChannelFacts facts;
  facts.peer = std::move(peer);
  facts.ends = connection.ends();
  facts.where = connection.where();
  facts.credentials = connection.credentials();
  // Both ends of a unix socket have asked the kernel whose the other is.
  facts.proven = connection.hasSecret() || options_.tls || connection.ends().isUnix;
  facts.lease = connection.lease();
  return facts;
}

Result<ControlImpl::ChannelPtr> ControlImpl::open(Dialler& dialler, const Welcome& welcome,
                                                  Deadline deadline) {
  ChannelFacts facts = factsOf(dialler, {dialler.peerId(), welcome.name, welcome.attributes});
  facts.initiator = true;
  bool offered = !welcome.token.empty();
  if (offered) {
    auto fd = FdExchange::fetch(welcome.exchange, welcome.token, Bond{facts.credentials, true},
                                earlier(deadline, kRingPatience));
    auto ring = fd.ok() ? RingMemory::attach(*fd) : fd.status();
    if (ring.ok()) facts.ring = *ring;
    if (!ring.ok()) logInfo("no message ring with {}: {}", dialler.who(), ring.status().message());
  }
  std::string first = offered && !facts.ring ? frameBytes(FrameType::ringNo) : std::string();
  auto channel = ChannelImpl::create(loop_, *this, events_, dialler.takeStream(), std::move(facts));
  Status status;
  loop_->run([&] {
    status = admitChannel(channel, first);
    if (status.ok()) return;
    channel->refuse(first + frameBytes(FrameType::bye, encodeStatus(status)), status);
  });
  if (!status.ok()) return status;
  return channel;
}

// One channel per pair of Controls. A dialler that has a channel with us says so, and uses it. One
// that has none although we have: either it gave that channel up and we have not heard so yet, or
// it is about to learn of it; a probe through the channel tells. When both dial at once, see
// claim(). Our own id is no peer: who dials its own listener has two ends that know nothing of each
// other.
void ControlImpl::introduced(const PendingPtr& pending) {
  const Ident& ident = pending->ident();
  if (ident.id == id_) return accept(pending);
  if (ChannelPtr channel = connectedTo(ident.id)) {
    if (ident.again) return pending->yield();
    held_.push_back({pending, channel, channel->probe()});
    return;
  }
  if (!claim(ident)) {
    held_.push_back({pending, nullptr});
    return;
  }
  accept(pending);
  std::lock_guard lock(mutex_);
  accepting_.erase(accepting_.find(ident.id));
}

// May this dial be let in, or is our own dial to the same peer the one that counts? When both dial
// at once it is that of the smaller id, whose owner holds the other's until its own is through. But
// if the peer let our dial in before it began its own, it says "again", and we are about to hear
// its welcome. And if ours said "again" because of a channel that has ended since, the peer holds
// it for that reason: then the peer's counts. DialMark is the other half of this: what the two
// write and read under one lock makes sure that at least one side notices.
bool ControlImpl::claim(const Ident& ident) {
  std::lock_guard lock(mutex_);
  const bool smaller = id_ < ident.id;
  const bool ours =
      saidAgain_.count(ident.id) > 0 ? smaller && ident.again : smaller || ident.again;
  if (dialling_.count(ident.id) > 0 && ours) return false;
  accepting_.insert(ident.id);
  return true;
}

void ControlImpl::dropped(const PendingPtr& pending, const Status&) {
  std::erase_if(held_, [&](const Held& held) { return held.pending == pending; });
}

// Takes out of held_ what `settled` is true for.
template <class Test>
std::vector<ControlImpl::Held> ControlImpl::takeHeld(Test settled) {
  std::vector<Held> taken;
  std::copy_if(held_.begin(), held_.end(), std::back_inserter(taken), settled);
  std::erase_if(held_, settled);
  return taken;
}

void ControlImpl::decideAgain(const std::vector<Held>& settled) {
  for (const Held& held : settled) {
    if (acceptor_.holds(held.pending)) introduced(held.pending);
  }
}

void ControlImpl::decideAgain(const std::string& peerId) {
  decideAgain(takeHeld(
      [&](const Held& held) { return !held.channel && held.pending->ident().id == peerId; }));
}

void ControlImpl::ponged(const ChannelPtr& channel, uint64_t number) {
  const auto settled =
      takeHeld([&](const Held& held) { return held.channel == channel && held.probe <= number; });
  for (const Held& held : settled) {
    if (acceptor_.holds(held.pending)) held.pending->yield();
  }
}

void ControlImpl::accept(const PendingPtr& pending) {
  const Ident& ident = pending->ident();
  Welcome welcome{options_.name, attributes(), {}, {}};
  ChannelFacts facts = factsOf(*pending, {ident.id, ident.name, ident.attributes});
  if (!hostId_.empty() && ident.hostId == hostId_) {
    auto ring = RingMemory::create();
    auto token = ring.ok() ? fds_->offer(ring->fd.get(), Bond{facts.credentials, false})
                           : Result<std::string>(ring.status());
    if (token.ok()) {
      facts.ring = ring->memory;
      facts.offer = std::make_unique<RingOffer>(*fds_, *token);
      welcome.exchange = fds_->name();
      welcome.token = *token;
    }
  }
  auto channel = ChannelImpl::create(loop_, *this, events_, pending->take(), std::move(facts));
  Status status = admitChannel(channel, frameBytes(FrameType::welcome, encodeWelcome(welcome)));
  if (!status.ok()) {
    channel->refuse(frameBytes(FrameType::refused, encodeStatus(status)), status);
  }
}

// The handshake is over on both sides. The peer hears `first` after our side has agreed and the
// table knows the channel.
Status ControlImpl::admitChannel(const ChannelPtr& channel, std::string_view first) {
  const std::string& peer = channel->peer().id;
  HMC_TRY(channel->prepare());
  if (peer != id_) retire(peer);
  HMC_TRY(events_.joined(channel));
  channels_.insert(channel);
  {
    std::lock_guard lock(mutex_);
    ++sockets_;
    if (peer != id_) table_[peer] = channel;
  }
  channel->start(first);
  // Its lease may be shorter than ours.
  if (channel->lease()->length() < options_.lease) scheduleBeat();
  return Status();
}

// A peer that lets a new channel come about has given up the old one, and its reason is on the way.
void ControlImpl::retire(const std::string& peerId) {
  ChannelPtr old;
  {
    std::lock_guard lock(mutex_);
    auto found = table_.find(peerId);
    if (found != table_.end()) old = found->second;
  }
  if (old) old->giveUp();
}

void ControlImpl::ended(const ChannelPtr& channel, const Status& why) {
  {
    std::lock_guard lock(mutex_);
    auto found = table_.find(channel->peer().id);
    if (found != table_.end() && found->second == channel) table_.erase(found);
  }
  logDebug("left: {}", why.toString());
  events_.left(channel, why);
  auto settled = takeHeld([&](const Held& held) { return held.channel == channel; });
  // Later: we may be here because a channel that follows this one is being made.
  if (!settled.empty()) loop_->post([this, settled] { decideAgain(settled); });
}

void ControlImpl::gone(const ChannelPtr& channel) {
  if (channels_.erase(channel) == 0) return;
  std::lock_guard lock(mutex_);
  if (--sockets_ == 0) noSockets_.notify_all();
}

void ControlImpl::beat() {
  for (const auto& channel : std::vector<ChannelPtr>(channels_.begin(), channels_.end())) {
    channel->beat();
  }
  scheduleBeat();
}

void ControlImpl::scheduleBeat() {
  auto shortest = options_.lease;
  for (const auto& channel : channels_) shortest = std::min(shortest, channel->lease()->length());
  const auto pause =
      std::max(std::min(options_.heartbeat, shortest / 4), std::chrono::milliseconds(1));
  beat_.after(pause, [this] { beat(); });
}

}  // namespace hmc::control
