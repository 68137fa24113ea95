#include "control/byte_stream.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace hmc::control {

namespace {

class SocketStream final : public ByteStream {
 public:
  explicit SocketStream(Fd socket) : socket_(std::move(socket)) {}

  int fd() const override { return socket_.get(); }

  Moved read(char* into, size_t size) override {
    const auto got = retried([&] { return recv(socket_.get(), into, size, MSG_DONTWAIT); });
    if (got == 0) return {.ended = true};
    return outcome(got);
  }

  Moved write(std::span<const iovec> parts) override {
    constexpr int kSendFlags = MSG_DONTWAIT | MSG_NOSIGNAL;
    Small small(parts);
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(parts.data());
    message.msg_iovlen = parts.size();
    return outcome(retried([&] {
      return small.fits ? send(socket_.get(), small.bytes, small.size, kSendFlags)
                        : sendmsg(socket_.get(), &message, kSendFlags);
    }));
  }

  void finishWriting() override { shutdown(socket_.get(), SHUT_WR); }

 private:
  // The parts of a short message in one place: send() is a good deal quicker than sendmsg().
  struct Small {
    explicit Small(std::span<const iovec> parts) {
      for (const iovec& part : parts) {
        fits = fits && part.iov_len <= sizeof(bytes) - size;
        if (!fits) return;
        if (part.iov_len > 0) std::memcpy(bytes + size, part.iov_base, part.iov_len);
        size += part.iov_len;
      }
    }
    char bytes[256];
    size_t size = 0;
    bool fits = true;
  };

  template <class Call>
  static ssize_t retried(const Call& call) {
    ssize_t moved = 0;
    do {
      moved = call();
    } while (moved < 0 && errno == EINTR);
    return moved;
  }
  static Moved outcome(ssize_t moved) {
    if (moved >= 0) return {.bytes = static_cast<size_t>(moved)};
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {};
    return {.errnum = errno};
  }
  const Fd socket_;
};

bool numeric(const sockaddr_storage& address, socklen_t size, std::string& host, uint16_t& port) {
  if (address.ss_family != AF_INET && address.ss_family != AF_INET6) return false;
  char text[NI_MAXHOST];
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, text, sizeof(text), nullptr, 0,
                  NI_NUMERICHOST) != 0) {
    return false;
  }
  host = text;
  if (host.starts_with("::ffff:")) host.erase(0, 7);  // an IPv4 client of an IPv6 listener
  port = ntohs(address.ss_family == AF_INET
                   ? reinterpret_cast<const sockaddr_in&>(address).sin_port
                   : reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  return true;
}

}  // namespace

void prepareSocket(int socket) {
  int on = 1;
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));  // refused by unix sockets
}

std::unique_ptr<ByteStream> socketStream(Fd socket) {
  prepareSocket(socket.get());
  return std::make_unique<SocketStream>(std::move(socket));
}

SocketEnds endsOf(int socket) {
  SocketEnds ends;
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  uint16_t localPort = 0;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    numeric(address, size, ends.localHost, localPort);
    ends.isUnix = address.ss_family == AF_UNIX;
  }
  size = sizeof(address);
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    numeric(address, size, ends.remoteHost, ends.remotePort);
  }
  return ends;
}

bool waitReady(int fd, short events, Deadline deadline) {
  pollfd entry{fd, events, 0};
  for (;;) {
    int ready = poll(&entry, 1, deadline.leftMs());
    if (ready > 0) return true;
    if (ready == 0 && deadline.passed()) return false;
    if (ready < 0 && errno != EINTR) return false;
  }
}

Status waitUp(ByteStream& stream, const std::string& who, Deadline deadline) {
  for (;;) {
    auto events = stream.comeUp();
    if (!events.ok()) return events.status().within(who);
    if (*events == 0) return Status();
    if (!waitReady(stream.fd(), *events, deadline)) {
      return error(Code::deadlineExceeded,
                   "{} did not answer the TLS handshake before the deadline", who);
    }
  }
}

namespace {
Status brokenBy(ByteStream& stream, int errnum, const std::string& who) {
  const Status problem = stream.problem();
  return problem.ok() ? errnoStatus(who + " broke the connection", errnum) : problem.within(who);
}
}  // namespace

Status writeAll(ByteStream& stream, std::string_view bytes, const std::string& who,
                Deadline deadline) {
  while (!bytes.empty()) {
    iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    Moved moved = stream.write({&part, 1});
    if (moved.errnum != 0) {
      // It may have said why before it went.
      char words[256];
      stream.read(words, sizeof(words));
      return brokenBy(stream, moved.errnum, who);
    }
    bytes.remove_prefix(moved.bytes);
    if (moved.bytes == 0 && !waitReady(stream.fd(), POLLOUT, deadline)) {
      return error(Code::deadlineExceeded, "{} did not read our handshake before the deadline",
                   who);
    }
  }
  return Status();
}

Status readAll(ByteStream& stream, char* into, size_t size, const std::string& who,
               Deadline deadline) {
  while (size > 0) {
    Moved moved = stream.read(into, size);
    if (moved.errnum != 0) return brokenBy(stream, moved.errnum, who);
    if (moved.ended) return error(Code::disconnected, "{} hung up during the handshake", who);
    into += moved.bytes;
    size -= moved.bytes;
    if (moved.bytes == 0 && !waitReady(stream.fd(), POLLIN, deadline)) {
      return error(Code::deadlineExceeded, "{} did not answer the handshake before the deadline",
                   who);
    }
  }
  return Status();
}

}  // namespace hmc::control
