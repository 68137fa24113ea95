#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "api/bulk.h"
#include "api/connections.h"
#include "api/listeners.h"
#include "api/ranks.h"
#include "api/settings.h"
#include "base/fork_guard.h"
#include "hmc/communicator.h"
#include "node/node_impl.h"

namespace hmc {

// A Communicator that came to be: its Node and what hangs on it. A Communicator whose Impl failed
// to come to be answers every call with the reason.
class Communicator::Impl {
 public:
  static Result<std::unique_ptr<Impl>> create(std::shared_ptr<ConnBuffer> buffer, size_t channels);
  ~Impl();
  // Ends the conversations; what is left of us answers with errors.
  void close();

  Status run(OpKind kind, const Target& target, const Block& block);
  bool runAtOnce(OpKind kind, const Target& target, const Block& block);
  Status runLegacy(OpKind kind, const std::string& ip, size_t offset, size_t size, ConnType type);
  Status start(OpKind kind, const Target& target, const Block& block, uint64_t* id);
  Status runPipeline(OpKind kind, const Target& target, const Block& block, size_t chunk,
                     size_t inflight);
  Status wait(uint64_t id, Deadline deadline);

  Status sendData(Result<std::shared_ptr<Connection>> connection, void* data, size_t size,
                  MemoryType type);
  Status receiveData(Result<std::shared_ptr<Connection>> connection, void* data, size_t size,
                     MemoryType type, size_t* received);

  Status connectControl(CtrlId peer, CtrlId self, const CtrlLink& link, const std::string& fallback,
                        Deadline deadline);
  Status connect(CtrlId peer, CtrlId self, const Target& target, const CtrlLink& link,
                 Deadline deadline);
  Status connectLegacy(const Target& target, Deadline deadline);
  // The peer from that address. A server waits for it to come.
  Result<std::shared_ptr<Connection>> findLegacy(const std::string& ip, ConnType type);
  Status checkType(ConnType type) const;

  Listeners& listeners() { return listeners_; }
  Ranks& ranks() { return ranks_; }
  Connections& connections() { return connections_; }
  const Settings& settings() const { return settings_; }
  const ForkGuard& forkGuard() const { return fork_; }
  std::string explain(const Target& target);

 private:
  // What putNB() and getNB() started.
  struct Pending {
    Ticket ticket;
    std::shared_ptr<Connection> connection;
  };
  Impl(Settings settings, std::shared_ptr<Sessions> sessions, std::shared_ptr<NodeImpl> node,
       std::shared_ptr<ConnBuffer> buffer, std::shared_ptr<LocalMemory> memory);
  Status finish(const std::shared_ptr<Connection>& connection, Status status);
  Status checkDataPort(const std::shared_ptr<PeerState>& peer, const Target& target,
                       Deadline deadline);
  Result<Region> userRegion(void* data, size_t size, MemoryType type) const;

  const ForkGuard fork_;
  const Settings settings_;
  const std::shared_ptr<Sessions> sessions_;
  const std::shared_ptr<NodeImpl> node_;
  const std::shared_ptr<ConnBuffer> buffer_;
  const std::shared_ptr<LocalMemory> memory_;
  Bulk bulk_;
  Listeners listeners_;
  Ranks ranks_;
  Connections connections_;

  std::mutex mutex_;
  std::unordered_map<uint64_t, Pending> pending_;  // guarded by mutex_, by id
  uint64_t lastPending_ = 0;                       // guarded by mutex_
  std::map<CtrlId, std::string> dialled_;          // guarded by mutex_: address by rank
  // guarded by mutex_: those that we dialled as the first generation does
  std::vector<std::weak_ptr<PeerState>> dialledLegacy_;
};

}  // namespace hmc
