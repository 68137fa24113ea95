#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hmc/result.h"
#include "system_call.h"

// The ceiling of everything that goes over TCP: one bare socket, no library.
namespace hmc::bench {

// Sends `request` bytes and waits for `reply` bytes, again and again. Both ends poll for small
// ones without sleeping, which is the fastest that a socket can be.
class RawSocket {
 public:
  static Result<RawSocket> connect(const std::string& host, uint16_t port);

  // Agrees on the two sizes with the other end.
  Status prepare(size_t request, size_t reply);
  Status exchange();

 private:
  explicit RawSocket(tool::Fd fd) : fd_(std::move(fd)) {}
  tool::Fd fd_;
  std::vector<char> request_;
  std::vector<char> reply_;
};

// The other end. Answers one connection, in the calling thread, until it is closed.
class RawSocketServer {
 public:
  static Result<RawSocketServer> listen(const std::string& host);

  uint16_t port() const { return port_; }
  // Returns when the peer is done; false after stop().
  bool serve() const;
  void stop() const;

 private:
  RawSocketServer(tool::Fd fd, uint16_t port) : fd_(std::move(fd)), port_(port) {}
  tool::Fd fd_;
  uint16_t port_;
};

// A TCP port that nothing uses now.
Result<uint16_t> freePort(const std::string& host = "127.0.0.1");

}  // namespace hmc::bench
