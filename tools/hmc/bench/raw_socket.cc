#include "bench/raw_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace hmc::bench::raw_socket {

namespace {

Status failure(const std::string& what) {
  return Status(Code::failed, "raw socket: " + what + ": " + std::strerror(errno));
}

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() { reset(); }
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    reset();
    fd_ = std::exchange(other.fd_, -1);
    return *this;
  }
  int get() const { return fd_; }
  void reset() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

// Memory of both processes, in place before the first round.
class Pages {
 public:
  explicit Pages(size_t bytes) : bytes_(std::max<size_t>(bytes, 1)) {
    void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    data_ = at == MAP_FAILED ? nullptr : static_cast<char*>(at);
  }
  ~Pages() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  char* data() const { return data_; }

 private:
  const size_t bytes_;
  char* data_;
};

// One end of the connection. After fork() only what is async-signal-safe happens in here.
class End {
 public:
  End(int fd, bool spin, Deadline deadline)
      : fd_(fd), flags_(MSG_NOSIGNAL | (spin ? MSG_DONTWAIT : 0)), deadline_(deadline) {}

  bool send(const char* data, size_t bytes) {
    return all(bytes, [&](size_t done) { return ::send(fd_, data + done, bytes - done, flags_); });
  }
  bool receive(char* data, size_t bytes) {
    return all(bytes, [&](size_t done) { return ::recv(fd_, data + done, bytes - done, flags_); });
  }

 private:
  template <class Step>
  bool all(size_t bytes, Step step) {
    size_t done = 0;
    for (unsigned tries = 1; done < bytes; ++tries) {
      ssize_t moved = step(done);
      if (moved > 0) {
        done += static_cast<size_t>(moved);
        continue;
      }
      if (moved == 0) errno = ECONNRESET;
      if (moved == 0 || (errno != EAGAIN && errno != EINTR)) return false;
      // A blocking call comes back empty-handed only once a second: see kGlance.
      bool look = (flags_ & MSG_DONTWAIT) == 0 || tries % 4096 == 0;
      if (look && deadline_.passed()) {
        errno = ETIMEDOUT;
        return false;
      }
    }
    return true;
  }

  const int fd_;
  const int flags_;
  const Deadline deadline_;
};

constexpr timeval kGlance{1, 0};  // how often a blocking call looks at its deadline

struct Connection {
  Fd near;
  Fd far;
};

Status prepare(int fd) {
  int on = 1;
  if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0 ||
      setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &kGlance, sizeof(kGlance)) != 0 ||
      setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &kGlance, sizeof(kGlance)) != 0) {
    return failure("set the socket's options");
  }
  return Status();
}

// The listener's backlog completes the connection, so one thread can hold both ends.
Result<Connection> connectToMyself() {
  Fd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  Connection made;
  made.near = Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener.get(), generic, length) != 0 || listen(listener.get(), 1) != 0 ||
      getsockname(listener.get(), generic, &length) != 0) {
    return failure("listen on loopback");
  }
  if (connect(made.near.get(), generic, length) != 0) return failure("connect over loopback");
  made.far = Fd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (made.far.get() < 0) return failure("accept over loopback");
  Status ready = prepare(made.near.get());
  if (ready.ok()) ready = prepare(made.far.get());
  if (!ready.ok()) return ready;
  return made;
}

// The other process answers until the connection closes.
[[noreturn]] void answer(const Exchange& exchange, int near, int far, char* data) {
  close(near);  // else it would never see the other side close
  End end(far, exchange.spin, exchange.deadline);
  while (end.receive(data, exchange.bytes) && end.send(data, exchange.answer)) {
  }
  _exit(0);
}

void finish(pid_t pid) {
  kill(pid, SIGKILL);
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Percentiles percentilesOf(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  auto at = [&](double part) {
    return times[std::min(times.size() - 1, static_cast<size_t>(part * double(times.size())))];
  };
  return {at(0.5), at(0.99), at(0.999)};
}

Result<Percentiles> timeRounds(const Exchange& exchange, int fd, char* data) {
  using Clock = std::chrono::steady_clock;
  End end(fd, exchange.spin, exchange.deadline);
  const size_t warmUp = exchange.rounds / 10 + 1;
  std::vector<double> times;
  times.reserve(exchange.rounds);
  for (size_t round = 0; round < warmUp + exchange.rounds; ++round) {
    auto started = Clock::now();
    if (started >= exchange.deadline.at()) {
      errno = ETIMEDOUT;
      return failure("exchange " + std::to_string(exchange.bytes) + " bytes");
    }
    if (!end.send(data, exchange.bytes) || !end.receive(data, exchange.answer)) {
      return failure("exchange " + std::to_string(exchange.bytes) + " bytes");
    }
    auto took = Clock::now() - started;
    if (round >= warmUp) times.push_back(std::chrono::duration<double, std::nano>(took).count());
  }
  return percentilesOf(std::move(times));
}

}  // namespace

Result<Percentiles> roundTrips(const Exchange& exchange) {
  if (exchange.bytes == 0 || exchange.answer == 0 || exchange.rounds == 0) {
    return Status(Code::invalidArgument, "raw socket: a round moves at least a byte each way");
  }
  auto connection = connectToMyself();
  if (!connection.ok()) return connection.status();
  const size_t largest = std::max(exchange.bytes, exchange.answer);
  Pages mine(largest);
  Pages theirs(largest);
  if (mine.data() == nullptr || theirs.data() == nullptr) return failure("map memory");
  pid_t pid = fork();
  if (pid < 0) return failure("fork");
  if (pid == 0) answer(exchange, connection->near.get(), connection->far.get(), theirs.data());
  connection->far.reset();
  auto timed = timeRounds(exchange, connection->near.get(), mine.data());
  finish(pid);
  return timed;
}

Result<double> echoRoundTripNs(size_t bytes, size_t rounds, bool spin) {
  auto timed = roundTrips({.bytes = bytes, .answer = bytes, .rounds = rounds, .spin = spin});
  if (!timed.ok()) return timed.status();
  return timed->p50;
}

Result<double> bandwidth(size_t bytes, size_t rounds) {
  auto timed = roundTrips({.bytes = bytes, .answer = 1, .rounds = rounds, .spin = false});
  if (!timed.ok()) return timed.status();
  return static_cast<double>(bytes) / timed->p50;  // bytes per nanosecond are GB/s
}

}  // namespace hmc::bench::raw_socket
