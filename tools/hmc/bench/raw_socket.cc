#include "bench/raw_socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <fmt/core.h>

namespace hmc::bench {

namespace {

using tool::Fd;

struct Sizes {
  uint64_t request;
  uint64_t reply;
};

Status socketError(const std::string& what) {
  return tool::systemError("raw socket: " + what);
}

// The flags of one call: polls while told to, then sleeps, up to the socket's own limit. Polling
// ends when nothing moves for a while, because other things are measured in between.
class PollThenSleep {
 public:
  explicit PollThenSleep(bool spin) : spin_(spin) {}

  int flags() const { return spin_ && idle_ < kMostIdle ? MSG_DONTWAIT : 0; }
  void moved() { idle_ = 0; }
  // Whether to try again after the error.
  bool again() {
    if (errno == EINTR) return true;
    if (errno != EAGAIN || flags() == 0) return false;  // slept until the time was over
    if (++idle_ % 64 == 0) sched_yield();               // the other end may need this very core
    return true;
  }

 private:
  static constexpr int kMostIdle = 300;
  const bool spin_;
  int idle_ = 0;
};

// Calls `move(data, size, flags)` until all bytes have moved. False where one call fails.
template <class Byte, class Move>
bool moveAll(Byte* data, size_t size, bool spin, const Move& move) {
  PollThenSleep waiting(spin);
  while (size > 0) {
    ssize_t moved = move(data, size, waiting.flags());
    if (moved < 0 && waiting.again()) continue;
    if (moved <= 0) return false;
    waiting.moved();
    data += moved;
    size -= static_cast<size_t>(moved);
  }
  return true;
}

bool sendAll(const Fd& fd, const char* data, size_t size, bool spin) {
  return moveAll(data, size, spin, [&](const char* from, size_t left, int flags) {
    return send(fd.get(), from, left, flags | MSG_NOSIGNAL);
  });
}

bool receiveAll(const Fd& fd, char* data, size_t size, bool spin) {
  return moveAll(data, size, spin, [&](char* into, size_t left, int flags) {
    return recv(fd.get(), into, left, flags);
  });
}

// Only for the client: a server waits for its client without limit.
void limitWaits(const Fd& fd) {
  timeval limit{30, 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

void noDelay(const Fd& fd) {
  int on = 1;
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

// A socket for the resolved address, after `use(fd, address)`.
template <class Use>
Result<Fd> openSocket(const std::string& host, uint16_t port, const Use& use) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0)
    return Status(Code::invalidArgument, "raw socket: no address for " + host);
  Fd fd(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const bool done = fd && use(fd, *found);
  const Status status = done ? Status() : socketError(fmt::format("{} port {}", host, port));
  freeaddrinfo(found);
  if (!status.ok()) return status;
  return fd;
}

void answer(const Fd& fd) {
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
  auto fd = openSocket(host, port, [](const Fd& made, const addrinfo& to) {
    limitWaits(made);
    noDelay(made);
    return ::connect(made.get(), to.ai_addr, to.ai_addrlen) == 0;
  });
  if (!fd.ok()) return fd.status();
  return RawSocket(*std::move(fd));
}

Status RawSocket::prepare(size_t request, size_t reply) {
  if (request == 0 || reply == 0) {
    return Status(Code::invalidArgument,
                  fmt::format("raw socket: an exchange of {} and {} bytes: both need at least 1",
                              request, reply));
  }
  if (!request_.empty()) {
    request_[0] = 1;  // the last one with the old sizes
    if (!sendAll(fd_, request_.data(), request_.size(), false)) return socketError("send");
  }
  request_.assign(request, 0);
  reply_.assign(reply, 0);
  Sizes sizes{request, reply};
  char go = 0;
  if (!sendAll(fd_, reinterpret_cast<char*>(&sizes), sizeof(sizes), false) ||
      !receiveAll(fd_, &go, 1, false)) {
    return socketError("agree on sizes");
  }
  return Status();
}

Status RawSocket::exchange() {
  if (!sendAll(fd_, request_.data(), request_.size(), true)) return socketError("send");
  if (!receiveAll(fd_, reply_.data(), reply_.size(), true)) return socketError("receive");
  return Status();
}

Result<RawSocketServer> RawSocketServer::listen(const std::string& host) {
  sockaddr_storage bound{};
  auto fd = openSocket(host, 0, [&](const Fd& made, const addrinfo& at) {
    socklen_t size = sizeof(bound);
    return bind(made.get(), at.ai_addr, at.ai_addrlen) == 0 && ::listen(made.get(), 1) == 0 &&
           getsockname(made.get(), reinterpret_cast<sockaddr*>(&bound), &size) == 0;
  });
  if (!fd.ok()) return fd.status();
  // The port lies at the same place in both families' addresses.
  return RawSocketServer(*std::move(fd), ntohs(reinterpret_cast<sockaddr_in&>(bound).sin_port));
}

bool RawSocketServer::serve() const {
  const Fd fd(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!fd) return errno == EINTR || errno == ECONNABORTED;
  noDelay(fd);
  answer(fd);
  return true;
}

void RawSocketServer::stop() const {
  shutdown(fd_.get(), SHUT_RDWR);
}

Result<uint16_t> freePort(const std::string& host) {
  auto server = RawSocketServer::listen(host);
  if (!server.ok()) return server.status();
  return server->port();
}

}  // namespace hmc::bench
