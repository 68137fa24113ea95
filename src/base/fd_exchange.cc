#include "base/fd_exchange.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>

#include "base/error.h"
#include "base/peer_user.h"
#include "base/random.h"

namespace hmc {

namespace {

constexpr size_t kTokenSize = 16;
// How long a client may take to say which descriptor it wants; the others wait as long.
constexpr std::chrono::seconds kPatience{2};
// Out of descriptors: try again after this.
constexpr std::chrono::milliseconds kRetry{50};

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

// One byte, and room for a descriptor beside it.
struct DescriptorMessage {
  DescriptorMessage() {
    header.msg_iov = &body;
    header.msg_iovlen = 1;
    header.msg_control = space;
    header.msg_controllen = sizeof(space);
  }
  char ok = 0;
  iovec body{&ok, 1};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
};

bool sendDescriptor(int socket, int fd) {
  DescriptorMessage message;
  if (fd >= 0) {
    message.ok = 1;
    cmsghdr* header = CMSG_FIRSTHDR(&message.header);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof(int));
  } else {
    message.header.msg_controllen = 0;
  }
  return sendmsg(socket, &message.header, MSG_NOSIGNAL) == 1;
}

Fd receiveDescriptor(int socket) {
  DescriptorMessage message;
  if (recvmsg(socket, &message.header, MSG_CMSG_CLOEXEC) != 1) return Fd();
  cmsghdr* header = CMSG_FIRSTHDR(&message.header);
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
  HMC_ASSIGN(auto loop, Loop::create("hmc-fds"));
  std::unique_ptr<FdExchange> exchange(new FdExchange(name, std::move(listener), std::move(loop)));
  Status status;
  exchange->loop_->run([raw = exchange.get(), &status] {
    auto watch =
        raw->loop_->watch(raw->listener_.get(), EPOLLIN, [raw](uint32_t) { raw->accept(); });
    status = watch.status();
    if (status.ok()) raw->watch_ = *std::move(watch);
  });
  if (!status.ok()) return status;
  return exchange;
}

FdExchange::FdExchange(std::string name, Fd listener, std::shared_ptr<Loop> loop)
    : name_(std::move(name)),
      listener_(std::move(listener)),
      loop_(std::move(loop)),
      retry_(*loop_) {}

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

void FdExchange::accept() {
  Fd client(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (client) return answer(client.get());
  watch_->ignore(EPOLLIN);
  retry_.after(kRetry, [this] { watch_->want(EPOLLIN); });
}

void FdExchange::answer(int client) {
  if (!checkSameUser(client).ok()) return;
  char token[kTokenSize];
  if (!waitFor(client, POLLIN, kPatience)) return;
  if (recv(client, token, sizeof(token), MSG_DONTWAIT) != sizeof(token)) return;
  Fd copy;
  {
    std::lock_guard lock(mutex_);
    auto found = offers_.find(std::string(token, sizeof(token)));
    if (found != offers_.end()) copy = Fd(fcntl(found->second.get(), F_DUPFD_CLOEXEC, 0));
  }
  sendDescriptor(client, copy.get());
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
  // Before it hears of the token, and before a descriptor of its choice is used.
  if (Status user = checkSameUser(dialled.get()); !user.ok())
    return user.within("the descriptor exchange " + name);
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
