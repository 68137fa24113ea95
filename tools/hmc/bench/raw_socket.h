#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hmc/result.h"

// The ceiling of everything that goes over TCP: one bare socket, no library.
namespace hmc::bench {

// Sends `request` bytes and waits for `reply` bytes, again and again. Small ones are polled for
// without sleeping, at both ends; that is the fastest a socket can be.
class RawSocket {
 public:
  static Result<RawSocket> connect(const std::string& host, uint16_t port);
  ~RawSocket();
  RawSocket(RawSocket&& other) noexcept;
  RawSocket& operator=(RawSocket&&) = delete;

  // Agrees on the two sizes with the other end.
  Status prepare(size_t request, size_t reply);
  Status exchange();

 private:
  explicit RawSocket(int fd) : fd_(fd) {}
  int fd_;
  std::vector<char> request_;
  std::vector<char> reply_;
};

// The other end. Answers one connection, in the calling thread, until it is closed.
class RawSocketServer {
 public:
  static Result<RawSocketServer> listen(const std::string& host);
  ~RawSocketServer();
  RawSocketServer(RawSocketServer&& other) noexcept;
  RawSocketServer& operator=(RawSocketServer&&) = delete;

  uint16_t port() const { return port_; }
  // Returns when the peer is done; false after stop().
  bool serve() const;
  void stop() const;

 private:
  RawSocketServer(int fd, uint16_t port) : fd_(fd), port_(port) {}
  int fd_;
  uint16_t port_;
};

}  // namespace hmc::bench
