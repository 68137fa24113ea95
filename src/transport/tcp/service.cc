#include "transport/tcp/service.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/error.h"
#include "base/log.h"
#include "base/thread.h"

namespace hmc::tcp {

namespace {

constexpr size_t kMostPending = 128;
constexpr std::chrono::microseconds kServiceSpin{50};
constexpr int kServiceLooksPerPoll = 4;

}  // namespace

Result<std::unique_ptr<Service>> Service::create(Exports& exports,
                                                 std::chrono::milliseconds timeout) {
  Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return errnoStatus("making the tcp service's epoll");
  Fd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return errnoStatus("making the tcp service's eventfd");
  epoll_event event{};
  event.events = EPOLLIN;
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) != 0) {
    return errnoStatus("watching the tcp service's eventfd");
  }
  return std::unique_ptr<Service>(new Service(exports, timeout, std::move(epoll), std::move(wake)));
}

Service::Service(Exports& exports, std::chrono::milliseconds timeout, Fd epoll, Fd wake)
    : exports_(exports),
      timeout_(timeout),
      epoll_(std::move(epoll)),
      wake_(std::move(wake)),
      spare_(::open("/dev/null", O_RDONLY | O_CLOEXEC)) {
  thread_ = namedThread("hmc-tcp", [this](std::stop_token stop) { run(stop); });
}

Service::~Service() {
  thread_.request_stop();
  eventfd_write(wake_.get(), 1);
  thread_.join();
}

Result<uint16_t> Service::open(const std::string& address) {
  std::lock_guard lock(mutex_);
  if (auto listener = listeners_.find(address); listener != listeners_.end()) {
    return std::get<Listener>(entries_.at(listener->second)).port;
  }
  HMC_ASSIGN(Listening listening, listenOn(address));
  const int fd = listening.fd.get();
  const uint16_t port = listening.port;
  listeners_[address] = add(fd, EPOLLIN, Listener{std::move(listening.fd), port});
  return port;
}

void Service::expect(const std::string& token, Owner& owner) {
  std::lock_guard lock(mutex_);
  owners_[token] = &owner;
}

void Service::serve(Owner& owner, Fd fd, std::string greeting) {
  std::lock_guard lock(mutex_);
  addSession(owner, std::move(fd), std::move(greeting));
}

void Service::drop(Owner& owner) {
  std::lock_guard lock(mutex_);
  std::erase_if(owners_, [&](const auto& entry) { return entry.second == &owner; });
  std::erase_if(entries_, [&](const auto& entry) {
    const Session* session = std::get_if<Session>(&entry.second);
    return session != nullptr && session->owner == &owner;
  });
}

void Service::run(const std::stop_token& stop) {
  auto lastTraffic = Deadline::Clock::time_point::min();
  for (int looks = 0; !stop.stop_requested(); ++looks) {
    const bool spin = spinning(lastTraffic);
    if (spin && looks % kServiceLooksPerPoll != 0) {
      std::lock_guard lock(mutex_);
      if (pollRecent()) lastTraffic = Deadline::Clock::now();
      continue;
    }
    epoll_event events[64];
    const int timeout = spin ? 0 : sleepMs();
    const int count = epoll_wait(epoll_.get(), events, std::size(events), timeout);
    bool traffic = false;
    for (int i = 0; i < count; ++i) {
      if (events[i].data.u64 == 0) {
        eventfd_t ignored;
        eventfd_read(wake_.get(), &ignored);
        continue;
      }
      std::lock_guard lock(mutex_);
      traffic = handle(events[i].data.u64, events[i].events) || traffic;
    }
    if (traffic) lastTraffic = Deadline::Clock::now();
    if (timeout != 0) dropLatePending();
  }
}

// The next request most often comes from the same session. Reading its socket at once costs one
// system call; epoll_wait() first would make it two.
bool Service::pollRecent() {
  auto found = entries_.find(recent_);
  Session* session = found == entries_.end() ? nullptr : std::get_if<Session>(&found->second);
  return session != nullptr && step(recent_, *session, 0);
}

// Requests come in bursts. Sleeping between two of them would add a wake-up to each.
bool Service::spinning(Deadline::Clock::time_point lastTraffic) const {
  return lastTraffic != Deadline::Clock::time_point::min() &&
         Deadline::Clock::now() - lastTraffic < kServiceSpin;
}

int Service::sleepMs() {
  std::lock_guard lock(mutex_);
  return pending_.empty() ? -1 : pending_.begin()->second.leftMs();
}

void Service::dropLatePending() {
  std::lock_guard lock(mutex_);
  while (!pending_.empty() && pending_.begin()->second.passed()) {
    logDebug("tcp: closed a connection that sent no greeting within {} ms", timeout_.count());
    entries_.erase(pending_.begin()->first);
    pending_.erase(pending_.begin());
  }
}

uint64_t Service::add(int fd, uint32_t events, Entry entry) {
  const uint64_t id = nextId_++;
  entries_.emplace(id, std::move(entry));
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  // Fails only when the kernel has no memory for it; the peer then runs into its own deadline.
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    logWarn("tcp: cannot watch a socket: {}", errnoText(errno));
  }
  return id;
}

void Service::addSession(Owner& owner, Fd fd, std::string greeting) {
  const int raw = fd.get();
  const bool sending = !greeting.empty();
  auto stream =
      std::make_unique<TargetStream>(std::move(fd), exports_, owner.lease(), std::move(greeting));
  add(raw, (sending ? EPOLLOUT : EPOLLIN) | EPOLLRDHUP,
      Session{std::move(stream), &owner, sending});
}

bool Service::handle(uint64_t id, uint32_t events) {
  auto found = entries_.find(id);
  if (found == entries_.end()) return false;  // dropped since the kernel reported it
  if (Session* session = std::get_if<Session>(&found->second)) return step(id, *session, events);
  if (Pending* pending = std::get_if<Pending>(&found->second)) {
    readGreeting(id, *pending);
  } else {
    accept(std::get<Listener>(found->second));
  }
  return false;
}

bool Service::step(uint64_t id, Session& session, uint32_t events) {
  // A peer that hangs up has given up on what it asked for last: none of it is applied any more.
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0 || !session.stream->serve()) {
    entries_.erase(id);
    return true;
  }
  if (session.stream->wantsToSend() != session.sending) {
    session.sending = !session.sending;
    epoll_event event{};
    event.events = (session.sending ? EPOLLOUT : EPOLLIN) | EPOLLRDHUP;
    event.data.u64 = id;
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, session.stream->fd(), &event);
  }
  recent_ = id;
  return session.stream->moved();
}

void Service::accept(Listener& listener) {
  Fd fd = acceptFrom(listener.fd.get());
  if (!fd) {
    if (errno == EMFILE || errno == ENFILE) shedLoad(listener);
    return;
  }
  if (pending_.size() == kMostPending) {
    entries_.erase(pending_.begin()->first);
    pending_.erase(pending_.begin());
  }
  const int raw = fd.get();
  const uint64_t id = add(raw, EPOLLIN, Pending{std::move(fd), {}, 0});
  pending_.emplace(id, Deadline(timeout_));
}

// A connection that we cannot accept would keep the listener readable and this thread busy.
void Service::shedLoad(Listener& listener) {
  logWarn("tcp: a connection is turned away because all file descriptors are in use");
  spare_.reset();
  acceptFrom(listener.fd.get()).reset();
  spare_ = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

void Service::readGreeting(uint64_t id, Pending& pending) {
  const ssize_t got = recv(pending.fd.get(), pending.greeting + pending.size,
                           Greeting::kSize - pending.size, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
  pending.size += got > 0 ? static_cast<size_t>(got) : 0;
  if (got > 0 && pending.size < Greeting::kSize) return;

  Pending greeted = std::move(pending);
  pending_.erase(id);
  entries_.erase(id);
  if (greeted.size < Greeting::kSize) return;
  // The next owner of the socket watches it for other events.
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, greeted.fd.get(), nullptr);
  startSession(std::move(greeted.fd), greeted.greeting);
}

void Service::startSession(Fd fd, const char* bytes) {
  const Greeting greeting = Greeting::unpack(bytes);
  auto owner = owners_.find(greeting.token);
  if (owner == owners_.end() || !owner->second->accepts(bytes)) {
    logDebug("tcp: {} sent a greeting that fits no link of ours", peerName(fd.get()));
  } else if (greeting.role == static_cast<uint32_t>(Role::forward)) {
    addSession(*owner->second, std::move(fd), "");
  } else if (greeting.role == static_cast<uint32_t>(Role::reverse)) {
    owner->second->connected(std::move(fd));
  }
}

}  // namespace hmc::tcp
