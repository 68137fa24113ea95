#include "control/socket.h"

#include <netdb.h>
#include <poll.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/peer_user.h"
#include "base/thread.h"
#include "control/byte_stream.h"
#include "control/socket_folder.h"

namespace hmc::control {

namespace {

constexpr std::string_view kTcp = "tcp://";
constexpr std::string_view kUnix = "unix://";
// The kernel wants a zero after the path.
constexpr size_t kLongestPath = sizeof(sockaddr_un::sun_path) - 1;

Result<uint16_t> parsePort(const std::string& address, std::string_view text) {
  uint16_t port = 0;
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, port);
  if (problem == std::errc() && stop == end) return port;
  return error(Code::invalidArgument, "\"{}\" in the address \"{}\" is not a port from 0 to 65535",
               text, address);
}

Result<Address> parseTcp(const std::string& address, std::string_view rest) {
  size_t colon = rest.rfind(':');
  size_t bracket = rest.rfind(']');
  if (colon == std::string_view::npos || (bracket != std::string_view::npos && colon < bracket)) {
    return error(Code::invalidArgument, "the address \"{}\" has no port", address);
  }
  Address out;
  HMC_ASSIGN(out.port, parsePort(address, rest.substr(colon + 1)));
  std::string_view host = rest.substr(0, colon);
  if (!host.empty() && host.front() == '[') {
    if (host.back() != ']') {
      return error(Code::invalidArgument, "the address \"{}\" has a [ without its ]", address);
    }
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return error(Code::invalidArgument,
                 "the IPv6 host in the address \"{}\" must stand in brackets", address);
  }
  if (host.empty()) {
    return error(Code::invalidArgument, "the address \"{}\" has no host", address);
  }
  for (char c : host) {
    if (c <= ' ' || c == '/' || c == '[' || c == ']' || c == 0x7f) {
      return error(Code::invalidArgument,
                   "the host of the address \"{}\" contains a character that hosts do not have",
                   address);
    }
  }
  out.host = std::string(host);
  return out;
}

Result<Address> parseUnix(const std::string& address, std::string_view path) {
  if (path.empty() || path.front() != '/') {
    return error(Code::invalidArgument, "the path of the address \"{}\" must begin with /",
                 address);
  }
  if (path.size() > kLongestPath) {
    return error(Code::invalidArgument,
                 "the path of the address \"{}\" has {} bytes, more than the {} that a unix socket "
                 "can have",
                 address, path.size(), kLongestPath);
  }
  if (path.find('\0') != std::string_view::npos || path.back() == '/') {
    return error(Code::invalidArgument, "the path of the address \"{}\" does not name a file",
                 address);
  }
  Address out;
  out.isUnix = true;
  out.path = std::string(path);
  return out;
}

SocketAddress unixAddress(const std::string& path) {
  SocketAddress out;
  auto& address = reinterpret_cast<sockaddr_un&>(out.bytes);
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  out.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
  return out;
}

Status dialFailed(const Address& address, int errnum) {
  if (errnum == ECONNREFUSED || (address.isUnix && errnum == ENOENT)) {
    return error(Code::disconnected, "nobody listens at {}", address.toString());
  }
  if (errnum == ETIMEDOUT) {
    return error(Code::deadlineExceeded, "{} did not answer before the deadline",
                 address.toString());
  }
  return errnoStatus("dial " + address.toString(), errnum);
}

// 0, or why the connection did not come up.
int finishConnect(int socket, Deadline deadline) {
  if (!waitReady(socket, POLLOUT, deadline)) return ETIMEDOUT;
  int problem = 0;
  socklen_t size = sizeof(problem);
  if (getsockopt(socket, SOL_SOCKET, SO_ERROR, &problem, &size) != 0) return errno;
  return problem;
}

int connectOne(int socket, const SocketAddress& to, Deadline deadline) {
  for (;;) {
    if (connect(socket, to.get(), to.size) == 0) return 0;
    if (errno == EINTR || errno == EINPROGRESS) return finishConnect(socket, deadline);
    // A unix listener whose queue is full: there is nothing to poll for, so look again in a moment.
    if (errno != EAGAIN || to.family() != AF_UNIX) return errno;
    if (deadline.passed()) return ETIMEDOUT;
    poll(nullptr, 0, deadline.leftMs(1));
  }
}

Result<Meanings> lookUp(const Address& address, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* list = nullptr;
  int problem =
      getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &list);
  if (problem != 0) {
    return error(Code::notFound, "the host \"{}\" of {} cannot be resolved: {}", address.host,
                 address.toString(), gai_strerror(problem));
  }
  std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, freeaddrinfo);
  Meanings out;
  for (addrinfo* entry = list; entry; entry = entry->ai_next) {
    SocketAddress one;
    std::memcpy(&one.bytes, entry->ai_addr, entry->ai_addrlen);
    one.size = entry->ai_addrlen;
    out.push_back(one);
  }
  return out;
}

// A question to the resolver, which may outlive whoever asked.
struct Asked {
  std::mutex mutex;
  std::condition_variable answered;
  std::optional<Result<Meanings>> answer;  // guarded by mutex
};

}  // namespace

std::string Address::toString() const {
  if (isUnix) return "unix://" + path;
  bool brackets = host.find(':') != std::string::npos;
  return fmt::format("tcp://{}{}{}:{}", brackets ? "[" : "", host, brackets ? "]" : "", port);
}

Result<Address> parseAddress(const std::string& text) {
  std::string_view view = text;
  if (view.starts_with(kTcp)) return parseTcp(text, view.substr(kTcp.size()));
  if (view.starts_with(kUnix)) return parseUnix(text, view.substr(kUnix.size()));
  if (view.find("://") == std::string_view::npos && view.find(':') != std::string_view::npos)
    return parseTcp(text, view);
  return error(Code::invalidArgument,
               "the address \"{}\" is none of host:port, tcp://host:port and unix:///path", text);
}

Result<Meanings> resolve(const Address& address, Deadline deadline) {
  if (address.isUnix) return Meanings{unixAddress(address.path)};
  auto numeric = lookUp(address, AI_NUMERICHOST);
  if (numeric.ok() || deadline.at() == Deadline::Clock::time_point::max())
    return numeric.ok() ? numeric : lookUp(address, 0);
  // The resolver cannot be told to stop.
  auto asked = std::make_shared<Asked>();
  HMC_ASSIGN(auto thread, startThread("hmc-resolve", [asked, address](const std::stop_token&) {
               auto answer = lookUp(address, 0);
               std::lock_guard lock(asked->mutex);
               asked->answer.emplace(std::move(answer));
               asked->answered.notify_all();
             }));
  thread.detach();
  std::unique_lock lock(asked->mutex);
  asked->answered.wait_until(lock, deadline.at(), [&] { return asked->answer.has_value(); });
  if (asked->answer) return *asked->answer;
  return error(
      Code::deadlineExceeded,
      "the host \"{}\" of {} was not resolved before the deadline: its name server does not "
      "answer; name the host by its numeric address, or in /etc/hosts",
      address.host, address.toString());
}

Result<Fd> dial(const Address& address, Deadline deadline) {
  if (!address.isUnix && address.port == 0) {
    return error(Code::invalidArgument, "the address {} has port 0, which nobody can listen on",
                 address.toString());
  }
  if (address.isUnix) HMC_TRY(checkSocketFolder(address.path));
  HMC_ASSIGN(auto meanings, resolve(address, deadline));
  int problem = ETIMEDOUT;
  for (const auto& to : meanings) {
    Fd fd(socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    problem = fd ? connectOne(fd.get(), to, deadline) : errno;
    if (problem != 0) continue;
    if (Status user = address.isUnix ? checkSameUser(fd.get()) : Status(); !user.ok())
      return user.within(address.toString());
    return fd;
  }
  return dialFailed(address, problem);
}

}  // namespace hmc::control
