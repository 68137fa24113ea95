#include "control/acceptor.h"

#include <vector>

#include "base/error.h"
#include "base/log.h"

namespace hmc::control {

namespace {
constexpr std::chrono::milliseconds kAcceptPause{100};
}

Acceptor::Acceptor(Owner& owner, Loop& loop, std::string id, std::string secret,
                   std::chrono::milliseconds patience)
    : owner_(owner),
      loop_(loop),
      id_(std::move(id)),
      secret_(std::move(secret)),
      patience_(patience) {}

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
  while (!full()) {
    Listener::Accepted accepted = open.listener->accept();
    if (accepted.errnum != 0) {
      logWarn("accept at {}: {}; trying again in {} ms", open.listener->address().toString(),
              errnoText(accepted.errnum), kAcceptPause.count());
      open.watch->ignore(EPOLLIN);
      open.pause->after(kAcceptPause, [&open] { open.watch->want(EPOLLIN); });
      return;
    }
    if (!accepted.socket) return;
    take(open.listener->address(), std::move(accepted.socket));
  }
  // Too many in their handshake: the rest wait in the kernel until acceptMore().
  open.watch->ignore(EPOLLIN);
}

void Acceptor::take(const Address& at, Fd socket) {
  SocketEnds ends = endsOf(socket.get());
  std::string where =
      at.isUnix ? at.toString() : fmt::format("{}:{}", ends.remoteHost, ends.remotePort);
  auto pending = std::make_shared<PendingConnection>(
      static_cast<PendingConnection::Owner&>(*this), loop_, socketStream(std::move(socket)),
      std::move(ends), std::move(where), AcceptorHandshake(secret_, id_));
  Status status = pending->start(patience_);
  if (!status.ok()) return logWarn("a connection was turned away: {}", status.message());
  pending_.insert(pending);
  ++inHandshake_;
}

void Acceptor::introduced(const std::shared_ptr<PendingConnection>& pending) {
  --inHandshake_;
  owner_.introduced(pending);
  acceptMore();
}

void Acceptor::dropped(const std::shared_ptr<PendingConnection>& pending, const Status& why) {
  if (pending_.erase(pending) == 0) return;
  if (!why.ok()) logDebug("{}", why.message());
  owner_.dropped(pending);
  if (pending->isIntroduced()) return;
  --inHandshake_;
  acceptMore();
}

void Acceptor::acceptMore() {
  if (full()) return;
  for (auto& [name, open] : listeners_) open.watch->want(EPOLLIN);
}

}  // namespace hmc::control
