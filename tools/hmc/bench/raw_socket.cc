#include "bench/raw_socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/core.h>

namespace hmc::bench {

namespace {

struct Sizes {
  uint64_t request;
  uint64_t reply;
};

Status failure(const std::string& what) {
  return Status(Code::failed, fmt::format("raw socket: {}: {}", what, std::strerror(errno)));
}

// One call's flags: polls while told to, then sleeps, up to the socket's own limit. Polling ends
// when nothing moves for a while: in between, others are measured.
class Patience {
 public:
  explicit Patience(bool spin) : spin_(spin) {}

  int flags() const { return spin_ && fruitless_ < kFruitless ? MSG_DONTWAIT : 0; }
  void moved() { fruitless_ = 0; }
  // Whether to try again after the error.
  bool again() {
    if (errno == EINTR) return true;
    if (errno != EAGAIN || flags() == 0) return false;  // asleep, and the time is over
    if (++fruitless_ % 64 == 0) sched_yield();          // the other end may need this very core
    return true;
  }

 private:
  static constexpr int kFruitless = 300;
  const bool spin_;
  int fruitless_ = 0;
};

// All of it, or false.
bool sendAll(int fd, const char* data, size_t size, bool spin) {
  Patience patience(spin);
  while (size > 0) {
    ssize_t sent = send(fd, data, size, MSG_NOSIGNAL | patience.flags());
    if (sent < 0 && patience.again()) continue;
    if (sent <= 0) return false;
    patience.moved();
    data += sent;
    size -= static_cast<size_t>(sent);
  }
  return true;
}

bool receiveAll(int fd, char* data, size_t size, bool spin) {
  Patience patience(spin);
  while (size > 0) {
    ssize_t got = recv(fd, data, size, patience.flags());
    if (got < 0 && patience.again()) continue;
    if (got <= 0) return false;
    patience.moved();
    data += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

// The server waits for its client without end, as servers do; the client does not.
void limitWaits(int fd) {
  timeval limit{30, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

void noDelay(int fd) {
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

// Runs `use` with the resolved numeric address.
template <class Use>
Status withAddress(const std::string& host, uint16_t port, Use&& use) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    return Status(Code::invalidArgument, "raw socket: no address for " + host);
  }
  Status status = use(*found);
  freeaddrinfo(found);
  return status;
}

void answer(int fd) {
  Sizes sizes{};
  std::vector<char> request;
  std::vector<char> reply;
  // A request that begins with a one is followed by new sizes.
  while (receiveAll(fd, reinterpret_cast<char*>(&sizes), sizeof(sizes), false)) {
    request.resize(sizes.request);
    reply.resize(sizes.reply);
    char go = 1;
    if (!sendAll(fd, &go, 1, false)) return;
    for (;;) {
      if (!receiveAll(fd, request.data(), request.size(), true)) return;
      if (request[0] != 0) break;
      if (!sendAll(fd, reply.data(), reply.size(), true)) return;
    }
  }
}

}  // namespace

Result<RawSocket> RawSocket::connect(const std::string& host, uint16_t port) {
  int fd = -1;
  Status status = withAddress(host, port, [&](const addrinfo& to) {
    fd = socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) limitWaits(fd);
    if (fd < 0 || ::connect(fd, to.ai_addr, to.ai_addrlen) != 0) return failure("connecting");
    return Status();
  });
  if (!status.ok()) {
    if (fd >= 0) close(fd);
    return status;
  }
  noDelay(fd);
  return RawSocket(fd);
}

RawSocket::RawSocket(RawSocket&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      request_(std::move(other.request_)),
      reply_(std::move(other.reply_)) {}

RawSocket::~RawSocket() {
  if (fd_ >= 0) close(fd_);
}

Status RawSocket::prepare(size_t request, size_t reply) {
  if (request == 0 || reply == 0) {
    return Status(Code::invalidArgument,
                  fmt::format("raw socket: an exchange of {} and {} bytes: both need at least 1",
                              request, reply));
  }
  if (!request_.empty()) {
    request_[0] = 1;  // the last one with the old sizes
    if (!sendAll(fd_, request_.data(), request_.size(), false)) return failure("sending");
  }
  request_.assign(request, 0);
  reply_.assign(reply, 0);
  Sizes sizes{request, reply};
  char go = 0;
  if (!sendAll(fd_, reinterpret_cast<char*>(&sizes), sizeof(sizes), false) ||
      !receiveAll(fd_, &go, 1, false)) {
    return failure("agreeing on sizes");
  }
  return Status();
}

Status RawSocket::exchange() {
  if (!sendAll(fd_, request_.data(), request_.size(), true)) return failure("sending");
  if (!receiveAll(fd_, reply_.data(), reply_.size(), true)) return failure("receiving");
  return Status();
}

Result<RawSocketServer> RawSocketServer::listen(const std::string& host) {
  int fd = -1;
  sockaddr_storage bound{};
  Status status = withAddress(host, 0, [&](const addrinfo& at) {
    socklen_t size = sizeof(bound);
    fd = socket(at.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, at.ai_addr, at.ai_addrlen) != 0 || ::listen(fd, 1) != 0 ||
        getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
      return failure("listening");
    }
    return Status();
  });
  if (!status.ok()) {
    if (fd >= 0) close(fd);
    return status;
  }
  // The port lies at the same place in both families' addresses.
  return RawSocketServer(fd, ntohs(reinterpret_cast<sockaddr_in&>(bound).sin_port));
}

RawSocketServer::RawSocketServer(RawSocketServer&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), port_(other.port_) {}

RawSocketServer::~RawSocketServer() {
  if (fd_ >= 0) close(fd_);
}

bool RawSocketServer::serve() const {
  int fd = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) return errno == EINTR || errno == ECONNABORTED;
  noDelay(fd);
  answer(fd);
  close(fd);
  return true;
}

void RawSocketServer::stop() const {
  shutdown(fd_, SHUT_RDWR);
}

}  // namespace hmc::bench
