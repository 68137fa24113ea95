#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "base/port_range.h"
#include "base/tls_session.h"
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
//   local_peer.*  whether a target of this host still lives
//   connection.*   a stream's socket, plain or with TLS
//   address.*, socket.*, wire.*   how bytes look and sockets are made
namespace hmc::tcp {

struct TcpOptions {
  int streams = 2;  // connections per direction and link, 1 to kMostStreams
  // How long the peer's connections may take to come up, and an accepted one to send its greeting.
  std::chrono::milliseconds connectTimeout{10000};
  // Most bytes in one put or get, up to kLargestRequest. Larger transfers are shared by the
  // streams, the more evenly the smaller the pieces are. This one fills, with its header, eight
  // packets of the loopback device (65,483 bytes each) and leaves nothing for a ninth.
  static constexpr size_t kUsualPiece = size_t{508} << 10;
  size_t piece = kUsualPiece;
  // The FdExchange of this process, where peers of this host can see that it lives.
  std::string exchange;
  // Encrypt every stream, with TLS 1.3 by the credentials of its link. Both ends do or none.
  bool tls = false;
  // Without TLS: checksums over everything that travels. It takes one end to want them.
  bool integrity = false;
  PortRange ports{};  // to listen at
  // How many TLS records one key protects.
  uint64_t recordsPerKey = TlsSession::kRecordsPerKey;
};

inline constexpr uint32_t kMostStreams = 64;

// "2 streams", "tls, 2 streams", "checked, 2 streams"
std::string describe(const TcpOptions& options, bool checked);

Result<std::unique_ptr<Transport>> create(const TcpOptions& options = {});

}  // namespace hmc::tcp
