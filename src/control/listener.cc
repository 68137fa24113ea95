#include "control/listener.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "base/peer_user.h"
#include "control/socket.h"
#include "control/socket_folder.h"

namespace hmc::control {

namespace {

Status taken(const Address& address) {
  if (address.isUnix) {
    return error(Code::alreadyExists, "{} is in use: something listens there already",
                 address.toString());
  }
  return error(Code::alreadyExists, "port {} is in use: cannot listen at {}", address.port,
               address.toString());
}

Status readPort(int fd, Address& address) {
  SocketAddress bound;
  bound.size = sizeof(bound.bytes);
  if (getsockname(fd, bound.get(), &bound.size) != 0) return errnoStatus("read a socket's port");
  address.port =
      ntohs(bound.family() == AF_INET ? reinterpret_cast<sockaddr_in&>(bound.bytes).sin_port
                                      : reinterpret_cast<sockaddr_in6&>(bound.bytes).sin6_port);
  return Status();
}

// Makes the path free: a socket file that nobody answers at is left over from a process that died.
Status clearPath(const Address& address) {
  struct stat facts {};
  if (lstat(address.path.c_str(), &facts) != 0) {
    return errno == ENOENT ? Status() : errnoStatus("look at " + address.path);
  }
  if (!S_ISSOCK(facts.st_mode)) {
    return error(Code::alreadyExists, "{} exists and is not a socket: it was left alone",
                 address.path);
  }
  auto probe = dial(address, std::chrono::seconds(1));
  if (probe.ok() || probe.status().code() != Code::disconnected) return taken(address);
  if (unlink(address.path.c_str()) != 0 && errno != ENOENT) {
    return errnoStatus("remove the dead socket " + address.path);
  }
  return Status();
}

}  // namespace

Result<std::unique_ptr<Listener>> Listener::open(const Address& wanted, const Meanings& meanings) {
  Address address = wanted;
  HMC_ASSIGN(Fd socket,
             address.isUnix ? openUnix(address, meanings.front()) : openTcp(address, meanings));
  std::unique_ptr<Listener> listener(new Listener(address, std::move(socket)));
  if (::listen(listener->fd(), SOMAXCONN) != 0) {
    if (errno == EADDRINUSE) return taken(address);
    return errnoStatus("listen at " + address.toString());
  }
  return listener;
}

Listener::Listener(Address address, Fd socket)
    : address_(std::move(address)), socket_(std::move(socket)) {
  struct stat facts {};
  if (address_.isUnix && stat(address_.path.c_str(), &facts) == 0) {
    device_ = facts.st_dev;
    inode_ = facts.st_ino;
  }
}

Listener::~Listener() {
  struct stat facts {};
  if (address_.isUnix && lstat(address_.path.c_str(), &facts) == 0 && facts.st_ino == inode_ &&
      facts.st_dev == device_) {
    unlink(address_.path.c_str());
  }
}

Result<Fd> Listener::openTcp(Address& address, const Meanings& meanings) {
  int problem = EADDRNOTAVAIL;
  for (const auto& at : meanings) {
    Fd fd(socket(at.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    int on = 1;
    if (fd) setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    // A dialler speaks first. Until it has, for a second at most, the kernel keeps its connection,
    // where it takes nobody's place.
    if (fd) setsockopt(fd.get(), IPPROTO_TCP, TCP_DEFER_ACCEPT, &on, sizeof(on));
    if (fd && bind(fd.get(), at.get(), at.size) == 0) {
      HMC_TRY(readPort(fd.get(), address));
      return fd;
    }
    problem = errno;
  }
  if (problem == EADDRINUSE) return taken(address);
  return errnoStatus("listen at " + address.toString(), problem);
}

// The file gets its mode between bind and listen: nobody can connect before it is private.
Result<Fd> Listener::openUnix(const Address& address, const SocketAddress& at) {
  HMC_TRY(checkSocketFolder(address.path));
  HMC_TRY(clearPath(address));
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return errnoStatus("create a unix socket");
  if (bind(fd.get(), at.get(), at.size) != 0) {
    if (errno == EADDRINUSE) return taken(address);
    return errnoStatus("listen at " + address.toString());
  }
  if (chmod(address.path.c_str(), S_IRUSR | S_IWUSR) != 0) {
    Status status = errnoStatus("make " + address.path + " private");
    unlink(address.path.c_str());
    return status;
  }
  return fd;
}

Listener::Accepted Listener::accept() {
  for (;;) {
    Fd client(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (client && address_.isUnix && !checkSameUser(client.get()).ok()) continue;
    if (client) return {std::move(client)};
    if (errno == EAGAIN) return {};
    // Concerns that client alone, or nobody: it hung up, its network failed, or a signal came.
    if (errno == EINTR || errno == ECONNABORTED || errno == EPROTO || errno == EPERM) continue;
    return {Fd(), errno};
  }
}

}  // namespace hmc::control
