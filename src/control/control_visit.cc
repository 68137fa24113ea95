#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "control/control_impl.h"

// Who comes through the listeners, and which of two conversations with one peer stays.

namespace hmc {

namespace {
constexpr std::chrono::milliseconds kAcceptPause{100};
}

void ControlImpl::visitors(OpenListener& open) {
  while (!crowded()) {
    Listener::Visit visit = open.listener->accept();
    if (visit.errnum != 0) {
      logWarn("accept at {}: {}; trying again in {} ms", open.listener->address().toString(),
              errnoText(visit.errnum), kAcceptPause.count());
      open.watch->ignore(EPOLLIN);
      open.pause->after(kAcceptPause, [&open] { open.watch->want(EPOLLIN); });
      return;
    }
    if (!visit.socket) return;
    admit(open, std::move(visit.socket));
  }
  open.watch->ignore(EPOLLIN);
  // Too many who have not said who they are: the rest wait in the kernel until one of them does or
  // is dropped; see welcomeMore().
}

void ControlImpl::admit(OpenListener& open, Fd socket) {
  const Address& at = open.listener->address();
  SocketEnds ends = endsOf(socket.get());
  std::string where =
      at.isUnix ? at.toString() : fmt::format("{}:{}", ends.remoteHost, ends.remotePort);
  auto visitor = std::make_shared<Visitor>(
      static_cast<VisitorHost&>(*this), *loop_, socketStream(std::move(socket)), std::move(ends),
      std::move(where), AcceptorGreeting(options_.secret, id_));
  Status status = visitor->start(options_.greeting);
  if (!status.ok()) return logWarn("a visitor was turned away: {}", status.message());
  visitors_.insert(visitor);
  ++greeting_;
}

void ControlImpl::introduced(const VisitorPtr& visitor) {
  --greeting_;
  decide(visitor);
  welcomeMore();
}

void ControlImpl::dropped(const VisitorPtr& visitor, const Status& why) {
  if (visitors_.erase(visitor) == 0) return;
  if (!why.ok()) logDebug("{}", why.message());
  std::erase_if(held_, [&](const Held& held) { return held.visitor == visitor; });
  if (visitor->isIntroduced()) return;
  --greeting_;
  welcomeMore();
}

void ControlImpl::welcomeMore() {
  if (crowded()) return;
  for (auto& [name, open] : listeners_) open.watch->want(EPOLLIN);
}

// One channel per pair of Controls. A dialler that has a channel with us says so, and uses it. One
// that has none although we have: either it gave that channel up and we have not heard so yet, or
// it is about to learn of it; a probe through the channel tells. When both dial at once, see
// claim(). Our own id is no peer: who dials its own listener has two ends that know nothing of each
// other.
void ControlImpl::decide(const VisitorPtr& visitor) {
  const Ident& ident = visitor->ident();
  if (ident.id == id_) return accept(visitor);
  if (ChannelPtr channel = connectedTo(ident.id)) {
    if (ident.again) return joinAgain(visitor, channel);
    held_.push_back({visitor, channel, channel->probe()});
    return;
  }
  if (!claim(ident)) {
    held_.push_back({visitor, nullptr});
    return;
  }
  accept(visitor);
  std::lock_guard lock(mutex_);
  accepting_.erase(accepting_.find(ident.id));
}

// May this dial be let in, or is our own dial to the same peer the one that counts? When both dial
// at once it is that of the smaller id, whose owner holds the other's until its own is through. But
// if the peer let our dial in before it began its own, it says "again", and we are about to hear
// its welcome. DialMark is the other half of this: what the two write and read under one lock makes
// sure that at least one side notices.
bool ControlImpl::claim(const Ident& ident) {
  std::lock_guard lock(mutex_);
  if (dialling_.count(ident.id) > 0 && (id_ < ident.id || ident.again)) return false;
  accepting_.insert(ident.id);
  return true;
}

void ControlImpl::decideAgain(const std::vector<Held>& settled) {
  for (const auto& one : settled) {
    std::erase_if(held_, [&](const Held& held) { return held.visitor == one.visitor; });
    if (visitors_.count(one.visitor) > 0) decide(one.visitor);
  }
}

void ControlImpl::decideAgain(const std::string& peerId) {
  std::vector<Held> settled;
  std::copy_if(held_.begin(), held_.end(), std::back_inserter(settled), [&](const Held& held) {
    return !held.channel && held.visitor->ident().id == peerId;
  });
  decideAgain(settled);
}

void ControlImpl::ponged(const ChannelPtr& channel, uint64_t number) {
  std::vector<Held> settled;
  std::copy_if(held_.begin(), held_.end(), std::back_inserter(settled),
               [&](const Held& held) { return held.channel == channel && held.probe <= number; });
  for (const auto& held : settled) {
    if (visitors_.count(held.visitor) > 0) joinAgain(held.visitor, channel);
  }
}

void ControlImpl::joinAgain(const VisitorPtr& visitor, const ChannelPtr& channel) {
  Status status = events_.joinedAgain(channel, visitor->ident().attributes);
  if (status.ok()) {
    visitor->yield();
  } else {
    visitor->refuse(status);
  }
}

void ControlImpl::accept(const VisitorPtr& visitor) {
  const Ident& ident = visitor->ident();
  Welcome welcome{options_.name, attributes(), {}, {}};
  ChannelFacts facts;
  facts.peer = {ident.id, ident.name, ident.attributes};
  facts.ends = visitor->ends();
  facts.where = visitor->where();
  facts.lease = options_.lease;
  if (!hostId_.empty() && ident.hostId == hostId_) {
    auto ring = RingMemory::create();
    auto token = ring.ok() ? fds_.offer(ring->fd.get()) : Result<std::string>(ring.status());
    if (token.ok()) {
      facts.ring = ring->memory;
      facts.offer = std::make_unique<RingOffer>(fds_, *token);
      welcome.exchange = fds_.name();
      welcome.token = *token;
    }
  }
  auto channel = ChannelImpl::create(loop_, *this, events_, visitor->take(), std::move(facts));
  Status status = admitChannel(channel, frameBytes(FrameType::welcome, encodeWelcome(welcome)));
  if (!status.ok()) {
    channel->refuse(frameBytes(FrameType::refused, encodeStatus(status)), status);
  }
}

}  // namespace hmc
