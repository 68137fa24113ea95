#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "base/fd.h"
#include "hmc/deadline.h"
#include "hmc/result.h"

namespace hmc::control {

// Where a listener is: "tcp://host:port", "tcp://[::1]:port" or "unix:///path".
struct Address {
  bool isUnix = false;
  std::string host;  // without brackets
  uint16_t port = 0;
  std::string path;

  std::string toString() const;
};

// Strict: the sentence of an error names the part that is wrong.
Result<Address> parseAddress(const std::string& text);

struct SocketAddress {
  sockaddr_storage bytes{};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&bytes); }
  int family() const { return bytes.ss_family; }
};

// What an address means to the kernel; several for a host name.
using Meanings = std::vector<SocketAddress>;

// The system's resolver takes as long as it likes for a name; at the deadline it is left to itself.
Result<Meanings> resolve(const Address& address, Deadline deadline);

// A connected socket, from the first of the address's meanings that answers. permissionDenied where
// another user listens on a unix socket.
Result<Fd> dial(const Address& address, Deadline deadline);

}  // namespace hmc::control
