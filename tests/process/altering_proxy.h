#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/fd.h"

namespace hmc::test {

// Sits between whoever dials its port() and a listener of this host, and may change what passes.
class AlteringProxy {
 public:
  enum class Way { toListener, toDialler };
  // Bytes on their way, and how many have passed before them in that direction of that connection.
  // Called by several threads.
  using Alter = std::function<void(Way way, uint64_t offset, std::span<char> bytes)>;

  AlteringProxy(uint16_t listener, Alter alter)
      : listener_(listener), alter_(std::move(alter)), listening_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in at = loopback(0);
    socklen_t size = sizeof(at);
    bind(listening_.get(), reinterpret_cast<sockaddr*>(&at), size);
    listen(listening_.get(), SOMAXCONN);
    getsockname(listening_.get(), reinterpret_cast<sockaddr*>(&at), &size);
    port_ = ntohs(at.sin_port);
    accepting_ = std::jthread([this](const std::stop_token& stop) { accept(stop); });
  }
  ~AlteringProxy() {
    accepting_.request_stop();
    shutdown(listening_.get(), SHUT_RDWR);
    accepting_.join();
    for (const Fd& fd : sockets_) shutdown(fd.get(), SHUT_RDWR);
    pumps_.clear();
  }

  uint16_t port() const { return port_; }

 private:
  static sockaddr_in loopback(uint16_t port) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return at;
  }

  void accept(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      Fd dialler(::accept(listening_.get(), nullptr, nullptr));
      if (!dialler) continue;
      Fd listener(socket(AF_INET, SOCK_STREAM, 0));
      const sockaddr_in at = loopback(listener_);
      if (connect(listener.get(), reinterpret_cast<const sockaddr*>(&at), sizeof(at)) != 0)
        continue;
      pumps_.emplace_back(
          [this, from = dialler.get(), to = listener.get()] { pump(from, to, Way::toListener); });
      pumps_.emplace_back(
          [this, from = listener.get(), to = dialler.get()] { pump(from, to, Way::toDialler); });
      sockets_.push_back(std::move(dialler));
      sockets_.push_back(std::move(listener));
    }
  }

  // Until one of them ends; an end is passed on.
  void pump(int from, int to, Way way) {
    std::vector<char> bytes(65536);
    uint64_t passed = 0;
    for (;;) {
      const ssize_t got = recv(from, bytes.data(), bytes.size(), 0);
      if (got <= 0) break;
      alter_(way, passed, {bytes.data(), static_cast<size_t>(got)});
      passed += static_cast<uint64_t>(got);
      for (ssize_t sent = 0; sent < got;) {
        const ssize_t count =
            send(to, bytes.data() + sent, static_cast<size_t>(got - sent), MSG_NOSIGNAL);
        if (count <= 0) return;
        sent += count;
      }
    }
    shutdown(to, SHUT_WR);
  }

  const uint16_t listener_;
  const Alter alter_;
  const Fd listening_;
  uint16_t port_ = 0;
  std::vector<Fd> sockets_;          // the accepting thread's, until it has ended
  std::vector<std::jthread> pumps_;  // the same
  std::jthread accepting_;
};

// Flips one bit of one byte, once, when that byte passes in that direction of any connection that
// has got so far.
class BitFlip {
 public:
  using Way = AlteringProxy::Way;
  void arm(Way way, uint64_t at, int bit) {
    std::lock_guard lock(mutex_);
    way_ = way;
    at_ = at;
    bit_ = bit;
    armed_ = true;
  }
  bool done() const {
    std::lock_guard lock(mutex_);
    return !armed_;
  }
  void operator()(Way way, uint64_t offset, std::span<char> bytes) {
    std::lock_guard lock(mutex_);
    if (!armed_ || way != way_ || at_ < offset || at_ - offset >= bytes.size()) return;
    bytes[at_ - offset] = static_cast<char>(bytes[at_ - offset] ^ (1 << bit_));
    armed_ = false;
  }

 private:
  mutable std::mutex mutex_;  // guards what follows
  bool armed_ = false;
  Way way_ = Way::toListener;
  uint64_t at_ = 0;
  int bit_ = 0;
};

}  // namespace hmc::test
