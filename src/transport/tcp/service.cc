#include "transport/tcp/service.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"
#include "base/log.h"

namespace hmc::tcp {

namespace {

constexpr size_t kMostPending = 128;
constexpr size_t kMostDropped = 256;
// Requests come in bursts. Sleeping between two of them would add a wake-up to each.
constexpr std::chrono::microseconds kServiceSpin{50};
constexpr unsigned kServiceLooksPerPoll = 4;
// Out of descriptors: accept again after this.
constexpr std::chrono::milliseconds kAcceptPause{50};

}  // namespace

Result<std::unique_ptr<Service>> Service::create(Exports& exports, const TcpOptions& options) {
  std::unique_ptr<Service> service(new Service(exports, options));
  if (options.tls) {
    // On the service thread, where connections are accepted.
    auto credentialsOf = [raw = service.get()](std::string_view token) {
      return raw->credentialsOf(std::string(token));
    };
    HMC_ASSIGN(service->tls_, TlsContext::forSecrets(credentialsOf, options.recordsPerKey));
  }
  // The next request most often comes from the same session. Reading its socket at once costs one
  // system call; epoll_wait() first would make it two.
  auto look = [raw = service.get()] {
    return raw->recent_ != raw->sessions_.end() && raw->step(raw->recent_, 0);
  };
  HMC_ASSIGN(service->loop_,
             Loop::create("hmc-tcp", {kServiceSpin, kServiceLooksPerPoll, std::move(look), {}}));
  return service;
}

Result<uint16_t> Service::open(const std::string& address) {
  Result<uint16_t> port = uint16_t{0};
  loop_->run([&] { port = listenAt(address); });
  return port;
}

Result<uint16_t> Service::listenAt(const std::string& address) {
  if (auto known = listeners_.find(address); known != listeners_.end()) {
    return known->second.at.port;
  }
  HMC_ASSIGN(Listening listening, listenOn(address, ports_));
  Listener& listener = listeners_.try_emplace(address, std::move(listening), *loop_).first->second;
  listener.watch = watch(listener.at.fd.get(), EPOLLIN, [&](uint32_t) { accept(listener); });
  return listener.at.port;
}

void Service::expect(const std::string& token, Owner& owner) {
  loop_->run([&] { owners_[token] = &owner; });
}

void Service::serve(Owner& owner, Connection connection, std::string greeting) {
  loop_->run([&] { addSession(owner, std::move(connection), std::move(greeting), true); });
}

Result<Connection> Service::secured(Fd fd, const std::string& token,
                                    const std::string& credentials) {
  if (!tls_) return Connection(std::move(fd));
  HMC_ASSIGN(auto session, tls_->dial(fd.get(), token, credentials));
  return Connection(std::move(fd), std::move(session));
}

void Service::drop(Owner& owner) {
  loop_->run([&] {
    std::erase_if(owners_, [&](const auto& entry) {
      if (entry.second != &owner) return false;
      if (dropped_.size() == kMostDropped) dropped_.pop_front();
      dropped_.emplace_back(entry.first, owner.credentials());
      return true;
    });
    std::erase_if(sessions_, [&](const Session& session) { return session.owner == &owner; });
    recent_ = sessions_.end();
  });
}

std::string Service::credentialsOf(const std::string& token) const {
  if (const auto owner = owners_.find(token); owner != owners_.end())
    return owner->second->credentials();
  const auto gone = std::find_if(dropped_.begin(), dropped_.end(),
                                 [&](const auto& one) { return one.first == token; });
  return gone == dropped_.end() ? std::string() : gone->second;
}

std::unique_ptr<Loop::Watch> Service::watch(int fd, uint32_t events,
                                            std::function<void(uint32_t)> ready) {
  auto watch = loop_->watch(fd, events, std::move(ready));
  if (watch.ok()) return *std::move(watch);
  // The kernel has no memory for it; the peer then runs into its own deadline.
  logWarn("tcp: {}", watch.status().message());
  return nullptr;
}

void Service::addSession(Owner& owner, Connection connection, std::string greeting, bool sendIt) {
  const uint32_t first = sendIt ? EPOLLOUT : EPOLLIN;
  std::string last = farewell(greeting, owner.credentials());
  const bool checked = Greeting::unpack(greeting.data()).checked;
  auto stream = std::make_unique<TargetStream>(std::move(connection), exports_, owner.lease(),
                                               sendIt ? std::move(greeting) : "", std::move(last),
                                               spare_, checked ? &counters_->altered : nullptr);
  const auto session = sessions_.insert(sessions_.end(), {&owner, std::move(stream), nullptr});
  session->watch = watch(session->stream->fd(), first | EPOLLRDHUP,
                         [this, session](uint32_t events) { step(session, events); });
  // What came behind the greeting is no news to the kernel.
  if (session->watch && session->stream->buffered()) step(session, 0);
}

bool Service::step(Sessions::iterator session, uint32_t events) {
  // A peer that hangs up has given up on what it asked for last: none of it is applied any more.
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0 || !session->stream->serve()) {
    recent_ = sessions_.end();
    sessions_.erase(session);
    return true;
  }
  const bool sending = session->stream->wantsToSend();
  session->watch->change(sending ? EPOLLOUT : EPOLLIN, sending ? EPOLLIN : EPOLLOUT);
  recent_ = session;
  if (session->stream->busy()) {
    if (auto another = session->owner->dialAnother())
      addSession(*session->owner, std::move(another->connection), std::move(another->greeting),
                 true);
  }
  return session->stream->moved();
}

void Service::accept(Listener& listener) {
  Fd fd = acceptFrom(listener.at.fd.get());
  if (!fd) {
    if (errno != EMFILE && errno != ENFILE) return;
    logWarn("tcp: accept: {}; trying again in {} ms", errnoText(errno), kAcceptPause.count());
    listener.watch->ignore(EPOLLIN);
    listener.pause.after(kAcceptPause, [&] { listener.watch->want(EPOLLIN); });
    return;
  }
  std::unique_ptr<TlsSession> session;
  if (tls_) {
    auto accepted = tls_->accept(fd.get());
    if (!accepted.ok()) return logWarn("tcp: {}", accepted.status().message());
    session = *std::move(accepted);
  }
  if (pending_.size() == kMostPending) pending_.pop_front();
  const auto pending =
      pending_.emplace(pending_.end(), Connection(std::move(fd), std::move(session)), *loop_);
  pending->watch = watch(pending->connection.get(), EPOLLIN,
                         [this, pending](uint32_t) { readGreeting(pending); });
  pending->late.after(timeout_, [this, pending] {
    logDebug("tcp: closed a connection that sent no greeting within {} ms", timeout_.count());
    pending_.erase(pending);
  });
}

void Service::readGreeting(std::list<Pending>::iterator pending) {
  const ssize_t got = pending->connection.receive(pending->greeting + pending->size,
                                                  Greeting::kSize - pending->size);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
  pending->size += got > 0 ? static_cast<size_t>(got) : 0;
  if (got > 0 && pending->size < Greeting::kSize) return;
  std::list<Pending> greeted;
  greeted.splice(greeted.end(), pending_, pending);
  if (const Status problem = pending->connection.problem(); !problem.ok())
    logDebug("tcp: {}: {}", peerName(pending->connection.get()), problem.message());
  if (pending->size < Greeting::kSize) return;
  // The next owner of the socket watches it for other events.
  pending->watch.reset();
  startSession(std::move(pending->connection), pending->greeting);
}

void Service::startSession(Connection connection, const char* bytes) {
  const Greeting greeting = Greeting::unpack(bytes);
  auto owner = owners_.find(greeting.token);
  if (owner == owners_.end() || !owner->second->accepts(bytes)) {
    logDebug("tcp: {} sent a greeting that fits no link of ours", peerName(connection.get()));
    const std::string credentials =
        owner == owners_.end() ? credentialsOf(greeting.token) : std::string();
    if (credentials.empty()) return;
    const std::string last = farewell({bytes, Greeting::kSize}, credentials);
    (void)connection.send(last.data(), last.size());
  } else if (greeting.role == static_cast<uint32_t>(Role::forward)) {
    addSession(*owner->second, std::move(connection), std::string(bytes, Greeting::kSize), false);
  } else if (greeting.role == static_cast<uint32_t>(Role::reverse)) {
    owner->second->connected(std::move(connection), bytes);
  }
}

}  // namespace hmc::tcp
