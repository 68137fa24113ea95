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

constexpr size_t kMostVisitors = 128;
constexpr std::chrono::microseconds kServiceSpin{50};
constexpr int kServiceLooksPerPoll = 4;

}  // namespace

Result<std::unique_ptr<Service>> Service::create(Exports& exports,
                                                 std::chrono::milliseconds patience) {
  Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return errnoStatus("making the tcp service's epoll");
  Fd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return errnoStatus("making the tcp service's eventfd");
  epoll_event event{};
  event.events = EPOLLIN;
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) != 0) {
    return errnoStatus("watching the tcp service's eventfd");
  }
  return std::unique_ptr<Service>(
      new Service(exports, patience, std::move(epoll), std::move(wake)));
}

Service::Service(Exports& exports, std::chrono::milliseconds patience, Fd epoll, Fd wake)
    : exports_(exports),
      patience_(patience),
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

void Service::expect(const std::string& token, Host& host) {
  std::lock_guard lock(mutex_);
  hosts_[token] = &host;
}

void Service::serve(Host& host, Fd fd, std::string greeting) {
  std::lock_guard lock(mutex_);
  addGuest(host, std::move(fd), std::move(greeting));
}

void Service::drop(Host& host) {
  std::lock_guard lock(mutex_);
  std::erase_if(hosts_, [&](const auto& entry) { return entry.second == &host; });
  std::erase_if(entries_, [&](const auto& entry) {
    const Guest* guest = std::get_if<Guest>(&entry.second);
    return guest != nullptr && guest->host == &host;
  });
}

void Service::run(const std::stop_token& stop) {
  auto lastTraffic = Deadline::Clock::time_point::min();
  for (int looks = 0; !stop.stop_requested(); ++looks) {
    const bool spin = spinning(lastTraffic);
    if (spin && looks % kServiceLooksPerPoll != 0) {
      std::lock_guard lock(mutex_);
      if (lookAgain()) lastTraffic = Deadline::Clock::now();
      continue;
    }
    epoll_event events[64];
    const int timeout = spin ? 0 : patienceLeftMs();
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
    if (timeout != 0) dropLateVisitors();
  }
}

// The next request most often comes where the last one came, and to read it there is one system
// call where asking all guests first is two.
bool Service::lookAgain() {
  auto found = entries_.find(recent_);
  Guest* guest = found == entries_.end() ? nullptr : std::get_if<Guest>(&found->second);
  return guest != nullptr && step(recent_, *guest, 0);
}

// Answers come in bursts: who sleeps between two of them adds a wake-up to each.
bool Service::spinning(Deadline::Clock::time_point lastTraffic) const {
  return lastTraffic != Deadline::Clock::time_point::min() &&
         Deadline::Clock::now() - lastTraffic < kServiceSpin;
}

int Service::patienceLeftMs() {
  std::lock_guard lock(mutex_);
  return visitors_.empty() ? -1 : visitors_.begin()->second.leftMs();
}

void Service::dropLateVisitors() {
  std::lock_guard lock(mutex_);
  while (!visitors_.empty() && visitors_.begin()->second.passed()) {
    logDebug("tcp: a visitor said nothing for {} ms", patience_.count());
    entries_.erase(visitors_.begin()->first);
    visitors_.erase(visitors_.begin());
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

void Service::addGuest(Host& host, Fd fd, std::string greeting) {
  const int raw = fd.get();
  const bool sending = !greeting.empty();
  auto stream =
      std::make_unique<TargetStream>(std::move(fd), exports_, host.lease(), std::move(greeting));
  add(raw, (sending ? EPOLLOUT : EPOLLIN) | EPOLLRDHUP, Guest{std::move(stream), &host, sending});
}

bool Service::handle(uint64_t id, uint32_t events) {
  auto found = entries_.find(id);
  if (found == entries_.end()) return false;  // dropped since the kernel reported it
  if (Guest* guest = std::get_if<Guest>(&found->second)) return step(id, *guest, events);
  if (Visitor* visitor = std::get_if<Visitor>(&found->second)) {
    greet(id, *visitor);
  } else {
    admit(std::get<Listener>(found->second));
  }
  return false;
}

bool Service::step(uint64_t id, Guest& guest, uint32_t events) {
  // A peer that hangs up has given up on what it asked for last: none of it is applied any more.
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0 || !guest.stream->serve()) {
    entries_.erase(id);
    return true;
  }
  if (guest.stream->wantsToSend() != guest.sending) {
    guest.sending = !guest.sending;
    epoll_event event{};
    event.events = (guest.sending ? EPOLLOUT : EPOLLIN) | EPOLLRDHUP;
    event.data.u64 = id;
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, guest.stream->fd(), &event);
  }
  recent_ = id;
  return guest.stream->moved();
}

void Service::admit(Listener& listener) {
  Fd fd = acceptFrom(listener.fd.get());
  if (!fd) {
    if (errno == EMFILE || errno == ENFILE) shedLoad(listener);
    return;
  }
  if (visitors_.size() == kMostVisitors) {
    entries_.erase(visitors_.begin()->first);
    visitors_.erase(visitors_.begin());
  }
  const int raw = fd.get();
  const uint64_t id = add(raw, EPOLLIN, Visitor{std::move(fd), {}, 0, Deadline(patience_)});
  visitors_.emplace(id, Deadline(patience_));
}

// Without a descriptor for it the visitor would stay at the listener and keep this thread busy.
void Service::shedLoad(Listener& listener) {
  logWarn("tcp: a connection is turned away because all file descriptors are in use");
  spare_.reset();
  acceptFrom(listener.fd.get()).reset();
  spare_ = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

void Service::greet(uint64_t id, Visitor& visitor) {
  const ssize_t got = recv(visitor.fd.get(), visitor.greeting + visitor.size,
                           Greeting::kSize - visitor.size, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
  visitor.size += got > 0 ? static_cast<size_t>(got) : 0;
  if (got > 0 && visitor.size < Greeting::kSize) return;

  const Greeting greeting = Greeting::unpack(visitor.greeting);
  Fd fd = std::move(visitor.fd);
  const bool complete = visitor.size == Greeting::kSize;
  visitors_.erase(id);
  entries_.erase(id);
  auto host = hosts_.find(std::string(greeting.token, kTokenSize));
  if (!complete || greeting.magic != kGreetingMagic || host == hosts_.end()) {
    logDebug("tcp: a visitor from {} is no peer of ours", peerName(fd.get()));
    return;
  }
  // The new owner watches the socket in its own way.
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd.get(), nullptr);
  if (greeting.role == static_cast<uint32_t>(Role::forward)) {
    addGuest(*host->second, std::move(fd), "");
  } else if (greeting.role == static_cast<uint32_t>(Role::reverse)) {
    host->second->arrived(std::move(fd));
  }
}

}  // namespace hmc::tcp
