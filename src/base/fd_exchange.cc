#include "base/fd_exchange.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>

#include "base/error.h"
#include "base/random.h"
#include "base/thread.h"

namespace hmc {

namespace {

constexpr size_t kTokenSize = 16;
constexpr std::chrono::seconds kVisitorPatience{2};
constexpr int kRetryMs = 50;

socklen_t abstractAddress(const std::string& name, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

bool waitFor(int fd, short events, Deadline deadline) {
  pollfd entry{fd, events, 0};
  int ready = 0;
  do {
    ready = poll(&entry, 1, deadline.leftMs());
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

bool sendDescriptor(int socket, int fd) {
  char ok = fd >= 0 ? 1 : 0;
  iovec body{&ok, 1};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &body;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = space;
    message.msg_controllen = sizeof(space);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof(int));
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL) == 1;
}

Fd receiveDescriptor(int socket) {
  char ok = 0;
  iovec body{&ok, 1};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &body;
  message.msg_iovlen = 1;
  message.msg_control = space;
  message.msg_controllen = sizeof(space);
  if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1) return Fd();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (!header || header->cmsg_type != SCM_RIGHTS) return Fd();
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(header), sizeof(int));
  return Fd(fd);
}

}  // namespace

Result<std::unique_ptr<FdExchange>> FdExchange::create() {
  std::string name = "hmc-" + hex(randomBytes(8));
  Fd listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener) return errnoStatus("create a unix socket");
  sockaddr_un address;
  socklen_t size = abstractAddress(name, address);
  if (bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener.get(), SOMAXCONN) != 0) {
    return errnoStatus("listen on the abstract unix socket " + name);
  }
  Fd stop(eventfd(0, EFD_CLOEXEC));
  if (!stop) return errnoStatus("create an eventfd");
  return std::unique_ptr<FdExchange>(new FdExchange(name, std::move(listener), std::move(stop)));
}

FdExchange::FdExchange(std::string name, Fd listener, Fd stop)
    : name_(std::move(name)), listener_(std::move(listener)), stop_(std::move(stop)) {
  thread_ = namedThread("hmc-fds", [this](std::stop_token) { serve(); });
}

FdExchange::~FdExchange() {
  eventfd_t one = 1;
  eventfd_write(stop_.get(), one);
}

Result<std::string> FdExchange::offer(int fd) {
  Fd copy(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy) return errnoStatus("duplicate a descriptor");
  std::string token = randomBytes(kTokenSize);
  std::lock_guard lock(mutex_);
  offers_.emplace(token, std::move(copy));
  return token;
}

void FdExchange::withdraw(const std::string& token) {
  std::lock_guard lock(mutex_);
  offers_.erase(token);
}

void FdExchange::serve() {
  for (;;) {
    pollfd entries[2] = {{listener_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    if (poll(entries, 2, -1) < 0) continue;
    if (entries[1].revents) return;
    Fd visitor(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (visitor) {
      answer(visitor.get());
    } else if (poll(&entries[1], 1, kRetryMs) > 0) {  // out of descriptors: do not spin on it
      return;
    }
  }
}

void FdExchange::answer(int visitor) {
  ucred who{};
  socklen_t size = sizeof(who);
  if (getsockopt(visitor, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 || who.uid != geteuid())
    return;
  char token[kTokenSize];
  if (!waitFor(visitor, POLLIN, kVisitorPatience)) return;
  if (recv(visitor, token, sizeof(token), MSG_DONTWAIT) != sizeof(token)) return;
  Fd copy;
  {
    std::lock_guard lock(mutex_);
    auto found = offers_.find(std::string(token, sizeof(token)));
    if (found != offers_.end()) copy = Fd(fcntl(found->second.get(), F_DUPFD_CLOEXEC, 0));
  }
  sendDescriptor(visitor, copy.get());
}

Result<Fd> FdExchange::fetch(const std::string& name, const std::string& token, Deadline deadline) {
  sockaddr_un address;
  if (name.size() >= sizeof(address.sun_path) || token.size() != kTokenSize) {
    return error(Code::invalidArgument, "malformed descriptor offer from a peer");
  }
  Fd dialled(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!dialled) return errnoStatus("create a unix socket");
  socklen_t size = abstractAddress(name, address);
  // connect() waits while the backlog is full, as it is when the peer is stopped.
  const timeval patience{deadline.leftMs() / 1000, deadline.leftMs() % 1000 * 1000 + 1};
  setsockopt(dialled.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  if (connect(dialled.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) {
    if (errno == EAGAIN) {
      return error(Code::deadlineExceeded, "the descriptor exchange {} of the peer is too busy",
                   name);
    }
    return errnoStatus("reach the descriptor exchange " + name + " of the peer");
  }
  if (send(dialled.get(), token.data(), token.size(), MSG_NOSIGNAL) < 0) {
    return errnoStatus("ask the descriptor exchange " + name);
  }
  if (!waitFor(dialled.get(), POLLIN, deadline)) {
    return error(Code::deadlineExceeded, "the descriptor exchange {} of the peer did not answer",
                 name);
  }
  Fd fd = receiveDescriptor(dialled.get());
  if (!fd) {
    return error(Code::notFound,
                 "the peer no longer offers that descriptor, or runs as another user than uid {}",
                 geteuid());
  }
  return fd;
}

bool FdExchange::gone(const std::string& name) {
  sockaddr_un address;
  if (name.size() >= sizeof(address.sun_path)) return true;
  Fd dialled(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!dialled) return false;
  socklen_t size = abstractAddress(name, address);
  return connect(dialled.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 &&
         errno == ECONNREFUSED;
}

}  // namespace hmc
