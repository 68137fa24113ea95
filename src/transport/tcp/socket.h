#pragma once

#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/port_range.h"
#include "hmc/result.h"

namespace hmc::tcp {

// All sockets are non-blocking, close-on-exec and without Nagle's delay. Hosts are numeric
// addresses, IPv4 or IPv6.

struct Listening {
  Fd fd;
  uint16_t port = 0;
};
// Listens on exactly that address, at the first port of these that is free.
Result<Listening> listenOn(const std::string& host, const PortRange& ports = {});

// Starts to connect. Until it has, send() and recv() answer EAGAIN; if it cannot, they say why.
Result<Fd> dial(const std::string& host, uint16_t port);

// The next connection; errno is left as accept4() set it when there is none.
Fd acceptFrom(int listener);

// Whether both ends of a connection have the same host address: then they are on this host.
bool hasOneAddress(int fd);

// "10.0.0.1:4711", "[::1]:4711"; "an unknown address" when the kernel does not say.
std::string peerName(int fd);
std::string endpointName(const std::string& host, uint16_t port);

// Nothing waits for a packet to be full: what waits already is sent, and nothing does from now on,
// unless it is sent with MSG_MORE.
void sendNow(int fd);

// Makes close() discard what was not sent and tell the peer with a reset.
void abortOnClose(int fd);

}  // namespace hmc::tcp
