#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "hmc/result.h"
#include "transport/transport.h"

// Put and get over plain sockets: works everywhere and depends on nothing. The one to read first.
//
//   tcp.cc      the Transport: ties the others together
//   link.*      the Link: the streams to one peer
//   origin.*    one stream over which we ask: puts and gets go out, acks and data come back
//   progress.*  the thread that calls progress() waits for all of those
//   target.*    one stream over which a peer asks: bytes go from the socket straight into place
//   service.*   the thread that serves all of those, and the listeners that peers dial
//   address.*, socket.*, wire.h   how bytes look and sockets are made
namespace hmc::tcp {

struct TcpOptions {
  // Connections per direction and link.
  int streams = 2;
  // How long the peer's connections may take to come up, and a visitor to say who it is.
  std::chrono::milliseconds patience{10000};
};

// "2 streams"
std::string describe(const TcpOptions& options);

Result<std::unique_ptr<Transport>> create(const TcpOptions& options = {});

}  // namespace hmc::tcp
