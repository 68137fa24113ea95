#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include <fmt/core.h>

#include "doctor/checks.h"
#include "hmc/deadline.h"
#include "system_call.h"

namespace hmc::tool {

namespace {

// 0, or the errno of the failed connection.
int tryConnect(const sockaddr* address, socklen_t size, Deadline deadline) {
  const Fd fd(socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return errno;
  int problem = connect(fd.get(), address, size) == 0 ? 0 : errno;
  if (problem == EINPROGRESS) {
    pollfd entry{fd.get(), POLLOUT, 0};
    int ready = 0;
    do {
      ready = poll(&entry, 1, deadline.leftMs());
    } while (ready < 0 && errno == EINTR);
    socklen_t length = sizeof(problem);
    problem = ETIMEDOUT;
    if (ready > 0) getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &problem, &length);
  }
  return problem;
}

Reach reachUnix(const PeerAddress& target, Deadline deadline) {
  Reach reach{{Level::ok, "name", "a unix socket needs none", ""}, 0};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (target.path.size() >= sizeof(address.sun_path)) {
    reach.problem = ENAMETOOLONG;
    return reach;
  }
  std::memcpy(address.sun_path, target.path.data(), target.path.size());
  reach.problem = tryConnect(reinterpret_cast<sockaddr*>(&address), sizeof(address), deadline);
  return reach;
}

std::string numeric(const addrinfo& one) {
  char host[NI_MAXHOST] = "?";
  getnameinfo(one.ai_addr, one.ai_addrlen, host, sizeof(host), nullptr, 0, NI_NUMERICHOST);
  return host;
}

}  // namespace

Reach tryReach(const PeerAddress& target, std::chrono::milliseconds timeout) {
  const Deadline deadline(timeout);
  if (target.host.empty()) return reachUnix(target, deadline);
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int found = getaddrinfo(target.host.c_str(), target.port.c_str(), &wanted, &list);
  if (found != 0) {
    return {
        {Level::fail, "name",
         fmt::format("{} cannot be found: {}", target.host, gai_strerror(found)),
         "getent hosts " + target.host + "  # correct the name, or add it to DNS or /etc/hosts"},
        0};
  }
  Reach reach{{Level::ok, "name", target.host + " is", ""}, 0};
  bool stands = false;
  for (const addrinfo* one = list; one; one = one->ai_next) {
    reach.name.detail += (one == list ? " " : ", ") + numeric(*one);
    if (stands) continue;
    reach.problem = tryConnect(one->ai_addr, one->ai_addrlen, deadline);
    stands = reach.problem == 0;
  }
  freeaddrinfo(list);
  return reach;
}

}  // namespace hmc::tool
