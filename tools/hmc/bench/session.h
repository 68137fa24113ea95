#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/bare_cuda.h"
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
  Device memory;      // where our region lies,
  Device peerMemory;  // and the server's
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
  // To one of the server's regions, over that transport alone or over those. By default the regions
  // lie where the options say.
  Result<std::unique_ptr<Path>> path(const std::string& transport, const std::string& region = "",
                                     std::optional<Device> memory = {}) const {
    return path(std::vector<std::string>{transport}, region, memory);
  }
  Result<std::unique_ptr<Path>> path(const std::vector<std::string>& transports,
                                     const std::string& region = "",
                                     std::optional<Device> memory = {}) const;
  // The server makes one more region, unless it has one of that name.
  Status makeRegion(const std::string& name, size_t bytes, Device device);

  // Our region or the server's is memory of a device.
  bool onDevice() const { return !options_.memory.isHost() || !options_.peerMemory.isHost(); }
  Device memory() const { return options_.memory; }
  Device peerMemory() const { return options_.peerMemory; }
  // The ceilings of that: the driver's own copies through ipc, host memory over another transport.
  // An error says why the first cannot be measured.
  Result<BareCuda*> bareCuda() const;
  Result<Path*> hostPath(const std::string& transport);
  // The server is on another host.
  bool away() const { return away_; }
  // One that no Communicator of ours had before, because the server tells them apart by it.
  uint32_t newRank() { return ++lastRank_; }
  // A Communicator of rank `rank`, connected to the server's as rank 1000.
  Result<std::unique_ptr<Communicator>> communicator(uint32_t rank,
                                                     const std::string& transports) const;
  // The same to another one of the server's, with a buffer of the caller's.
  Result<std::unique_ptr<Communicator>> communicator(uint32_t rank, const std::string& transports,
                                                     uint16_t port,
                                                     std::shared_ptr<ConnBuffer> buffer) const;
  // Sends the server a request (bench/server.h) and waits for its answer. One that we take part in
  // has two: request() returns when the server is ready, answer() when it is done.
  Result<std::string> request(const std::string& what);
  Result<std::string> answer();

  // Mapped by the server as well where it is local().
  const SharedMemory& shared() const { return *shared_; }
  RawSocket& socket() { return *socket_; }

 private:
  explicit Session(const SessionOptions& options) : options_(options) {}
  Status prepareDevices();

  const SessionOptions options_;
  std::string region_ = kRegion;
  std::unique_ptr<BareCuda> bareCuda_;
  Status noBareCuda_;
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
  std::map<std::string, std::unique_ptr<Path>> hostPaths_;
};

}  // namespace hmc::bench
