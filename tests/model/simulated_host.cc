#include "model/simulated_host.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

namespace hmc::model {

namespace {

constexpr int kFirstFd = 1 << 20;  // no real one is that large

SimulatedHost* host = nullptr;

Socket* simulated(int fd) {
  return host && fd >= kFirstFd ? host->find(fd) : nullptr;
}

ssize_t failed(int errnum) {
  errno = errnum;
  return -1;
}

ssize_t receive(Socket& socket, const iovec* pieces, size_t count) {
  if (socket.receiving) socket.receiving();
  Wire& in = *socket.in;
  // As on Linux, what has arrived can be read also after a reset.
  if (in.arrived.empty())
    return in.resetSeen ? failed(ECONNRESET) : in.finSeen ? 0 : failed(EAGAIN);
  size_t got = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t size = std::min(in.arrived.size() - got, pieces[i].iov_len);
    if (size > 0) std::memcpy(pieces[i].iov_base, in.arrived.data() + got, size);
    got += size;
  }
  in.arrived.erase(0, got);
  return static_cast<ssize_t>(got);
}

ssize_t send(Socket& socket, const iovec* pieces, size_t count) {
  Wire& out = *socket.out;
  if (socket.in->resetSeen || out.end != Wire::End::none) return failed(EPIPE);
  size_t taken = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t room =
        SimulatedHost::kSendBuffer - std::min(SimulatedHost::kSendBuffer, out.sent.size());
    const size_t size = std::min(pieces[i].iov_len, room);
    out.sent.append(static_cast<const char*>(pieces[i].iov_base), size);
    taken += size;
  }
  if (taken == 0) return failed(EAGAIN);
  if (socket.sending) socket.sending();
  return static_cast<ssize_t>(taken);
}

void close(Socket& socket) {
  if (std::exchange(socket.closed, true)) return;
  Wire& out = *socket.out;
  socket.in->receiverGone = true;
  if (!socket.lingers) out.sent.clear();
  // Closed over bytes that nobody has read, a socket resets the connection.
  out.end = socket.lingers && socket.in->arrived.empty() ? Wire::End::fin : Wire::End::reset;
}

}  // namespace

SimulatedHost::SimulatedHost() {
  host = this;
}

SimulatedHost::~SimulatedHost() {
  host = nullptr;
}

int SimulatedHost::open(Socket& socket) {
  sockets_.push_back(&socket);
  return kFirstFd + static_cast<int>(sockets_.size()) - 1;
}

Socket* SimulatedHost::find(int fd) {
  const auto index = static_cast<size_t>(fd - kFirstFd);
  return index < sockets_.size() ? sockets_[index] : nullptr;
}

void SimulatedHost::deliver(Wire& wire) {
  const size_t size = std::min(wire.sent.size(), kPacket);
  wire.arrived += wire.sent.substr(0, size);
  wire.sent.erase(0, size);
  if (!wire.sent.empty() || size > 0) return;
  wire.finSeen = wire.finSeen || wire.end == Wire::End::fin;
  wire.resetSeen = wire.resetSeen || wire.end == Wire::End::reset;
}

}  // namespace hmc::model

using hmc::model::simulated;

// The C++ library has to find them, too.
#pragma GCC visibility push(default)
extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  if (!hmc::model::host) return static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  const int64_t now = hmc::model::host->now();
  time->tv_sec = now / 1000000000;
  time->tv_nsec = now % 1000000000;
  return 0;
}

ssize_t recvmsg(int fd, msghdr* message, int flags) {
  if (auto* socket = simulated(fd))
    return hmc::model::receive(*socket, message->msg_iov, message->msg_iovlen);
  return syscall(SYS_recvmsg, fd, message, flags);
}

ssize_t recv(int fd, void* bytes, size_t size, int flags) {
  const iovec piece{bytes, size};
  if (auto* socket = simulated(fd)) return hmc::model::receive(*socket, &piece, 1);
  return syscall(SYS_recvfrom, fd, bytes, size, flags, nullptr, nullptr);
}

ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  if (auto* socket = simulated(fd))
    return hmc::model::send(*socket, message->msg_iov, message->msg_iovlen);
  return syscall(SYS_sendmsg, fd, message, flags);
}

ssize_t send(int fd, const void* bytes, size_t size, int flags) {
  const iovec piece{const_cast<void*>(bytes), size};
  if (auto* socket = simulated(fd)) return hmc::model::send(*socket, &piece, 1);
  return syscall(SYS_sendto, fd, bytes, size, flags, nullptr, 0);
}

int shutdown(int fd, int how) noexcept {
  auto* socket = simulated(fd);
  if (!socket) return static_cast<int>(syscall(SYS_shutdown, fd, how));
  if (socket->out->end == hmc::model::Wire::End::none)
    socket->out->end = hmc::model::Wire::End::fin;
  return 0;
}

int setsockopt(int fd, int level, int name, const void* value, socklen_t size) noexcept {
  auto* socket = simulated(fd);
  if (!socket) return static_cast<int>(syscall(SYS_setsockopt, fd, level, name, value, size));
  if (level == SOL_SOCKET && name == SO_LINGER) socket->lingers = false;
  return 0;
}

int epoll_ctl(int set, int how, int fd, epoll_event* event) noexcept {
  return simulated(fd) ? 0 : static_cast<int>(syscall(SYS_epoll_ctl, set, how, fd, event));
}

int close(int fd) {
  auto* socket = simulated(fd);
  if (!socket) return static_cast<int>(syscall(SYS_close, fd));
  hmc::model::close(*socket);
  return 0;
}

}  // extern "C"
#pragma GCC visibility pop
