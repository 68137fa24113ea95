#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/raw_socket.h"
#include "bench/server.h"
#include "bench/shared_memory.h"
#include "hmc.h"
#include "hmc/node.h"
#include "program.h"

// A client's connection to a bench server, and the ceilings that go with it.
namespace hmc::bench {

// The rank of the server's Communicator.
inline constexpr uint32_t kServerRank = 1000;

struct SessionOptions {
  std::string connect;  // empty: start a server of our own on this machine
  size_t bytes = size_t{64} << 20;
};

// A Node of ours and the server's region that it has open.
struct Path {
  Node node;
  Peer peer;
  LocalRegion local;
  RemoteRegion remote;
};

class Session {
 public:
  static Result<std::unique_ptr<Session>> open(const SessionOptions& options);

  // We started the server on this machine and share memory with it.
  bool local() const { return server_.program != nullptr; }
  const Hello& server() const { return hello_; }
  const std::string& address() const { return address_; }
  const std::string& host() const { return host_; }

  // Every transport, and whether it reaches the server.
  std::vector<PathReport> paths() const { return peer_->explain(); }
  // To one of the server's regions, over that transport alone or over those.
  Result<std::unique_ptr<Path>> path(const std::string& transport,
                                     const std::string& region = kRegion) const {
    return path(std::vector<std::string>{transport}, region);
  }
  Result<std::unique_ptr<Path>> path(const std::vector<std::string>& transports,
                                     const std::string& region = kRegion) const;
  // The server is on another host.
  bool away() const { return away_; }
  // One that no Communicator of ours had before, because the server tells them apart by it.
  uint32_t newRank() { return ++lastRank_; }
  // A Communicator of rank `rank`, connected to the server's as rank 1000.
  Result<std::unique_ptr<Communicator>> communicator(uint32_t rank,
                                                     const std::string& transports) const;
  // Sends the server a request (bench/server.h) and waits for its answer. One that we take part in
  // has two: request() returns when the server is ready, answer() when it is done.
  Result<std::string> request(const std::string& what);
  Result<std::string> answer();

  // Mapped by the server as well where it is local().
  const SharedMemory& shared() const { return *shared_; }
  RawSocket& socket() { return *socket_; }

 private:
  Session() = default;

  std::unique_ptr<SharedMemory> shared_;
  tool::OtherProcess server_;
  std::string address_;
  std::string host_;
  Hello hello_;
  std::unique_ptr<RawSocket> socket_;
  uint32_t lastRank_ = 0;
  bool away_ = false;
  // For requests; measuring has Nodes of its own.
  std::unique_ptr<Node> node_;
  std::unique_ptr<Peer> peer_;
};

}  // namespace hmc::bench
