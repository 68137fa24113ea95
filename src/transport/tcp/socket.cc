#include "transport/tcp/socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/environment.h"
#include "base/error.h"

namespace hmc::tcp {

namespace {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  sockaddr* raw() { return reinterpret_cast<sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
};

// A numeric host, with a scope for link-local IPv6 ("fe80::1%eth0"). Asks no name server.
Result<SocketAddress> resolve(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  int failed = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failed != 0) {
    return error(Code::invalidArgument, "'{}' is not a numeric host address: {}", host,
                 gai_strerror(failed));
  }
  SocketAddress address;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  address.size = found->ai_addrlen;
  freeaddrinfo(found);
  return address;
}

Result<Fd> makeSocket(int family) {
  Fd fd(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return errnoStatus("making a tcp socket");
  return fd;
}

// None where the port is taken. What is left of a listener that is gone (TIME_WAIT) does not count.
Result<Fd> listenAt(const std::string& host, uint16_t port) {
  HMC_ASSIGN(SocketAddress address, resolve(host, port));
  HMC_ASSIGN(Fd fd, makeSocket(address.family()));
  const int on = 1;
  if (port != 0) setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(fd.get(), address.raw(), address.size) == 0 && listen(fd.get(), SOMAXCONN) == 0)
    return fd;
  if (errno == EADDRINUSE && port != 0) return Fd();
  return errnoStatus("listening for tcp data on " + endpointName(host, port));
}

Result<Listening> withPort(Fd fd, const std::string& host) {
  SocketAddress bound;
  bound.size = sizeof(bound.storage);
  if (getsockname(fd.get(), bound.raw(), &bound.size) != 0) {
    return errnoStatus(fmt::format("asking for the port of the listener on {}", host));
  }
  const uint16_t port = bound.family() == AF_INET6
                            ? ntohs(reinterpret_cast<sockaddr_in6*>(bound.raw())->sin6_port)
                            : ntohs(reinterpret_cast<sockaddr_in*>(bound.raw())->sin_port);
  return Listening{std::move(fd), port};
}

}  // namespace

void sendNow(int fd) {
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

std::string endpointName(const std::string& host, uint16_t port) {
  const bool six = host.find(':') != std::string::npos;
  return six ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

Result<Listening> listenOn(const std::string& host, const PortRange& ports) {
  for (uint32_t port = ports.first; port <= ports.last; ++port) {
    HMC_ASSIGN(Fd fd, listenAt(host, static_cast<uint16_t>(port)));
    if (fd) return withPort(std::move(fd), host);
  }
  return error(Code::exhausted,
               "no port of {} to {} is free on {} for the data of tcp: widen the range "
               "(NodeOptions::dataPorts, {})",
               ports.first, ports.last, host, variable::kDataPorts.name);
}
Result<Fd> dial(const std::string& host, uint16_t port) {
  HMC_ASSIGN(SocketAddress address, resolve(host, port));
  HMC_ASSIGN(Fd fd, makeSocket(address.family()));
  sendNow(fd.get());
  // EINTR leaves a connect on its way, as EINPROGRESS does.
  if (connect(fd.get(), address.raw(), address.size) != 0 && errno != EINPROGRESS &&
      errno != EINTR) {
    return errnoStatus(fmt::format("connecting to {}", endpointName(host, port)));
  }
  return fd;
}

Fd acceptFrom(int listener) {
  Fd fd(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (fd) sendNow(fd.get());
  return fd;
}

bool hasOneAddress(int fd) {
  const auto hostOf = [fd](auto ask) -> std::string {
    SocketAddress address;
    address.size = sizeof(address.storage);
    char host[NI_MAXHOST];
    const bool known = ask(fd, address.raw(), &address.size) == 0 &&
                       getnameinfo(address.raw(), address.size, host, sizeof(host), nullptr, 0,
                                   NI_NUMERICHOST) == 0;
    return known ? host : "";
  };
  const std::string here = hostOf(getsockname);
  return !here.empty() && here == hostOf(getpeername);
}

std::string peerName(int fd) {
  SocketAddress address;
  address.size = sizeof(address.storage);
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (getpeername(fd, address.raw(), &address.size) != 0 ||
      getnameinfo(address.raw(), address.size, host, sizeof(host), port, sizeof(port),
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "an unknown address";
  }
  return endpointName(host, static_cast<uint16_t>(std::stoi(port)));
}

void abortOnClose(int fd) {
  linger abrupt{1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &abrupt, sizeof(abrupt));
}

}  // namespace hmc::tcp
