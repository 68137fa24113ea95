#pragma once

#include <memory>
#include <string>
#include <vector>

#include "node/local_memory.h"
#include "node/peer_state.h"

namespace hmc {

// A peer's region, opened over one link. Safe from any thread.
class RemoteMapping {
 public:
  RemoteMapping(std::shared_ptr<NodeImpl> node, std::shared_ptr<PeerState> peer, size_t transport,
                std::shared_ptr<Link> link, std::unique_ptr<RemoteMemory> memory, Device device);

  uint64_t size() const { return memory_->size; }
  Access access() const { return memory_->access; }
  Device device() const { return device_; }
  const std::string& transport() const { return engine_.transport().facts().name; }
  // "ipc (mapped)"
  std::string path() const;

  Status run(OpKind kind, const LocalMemory& local, uint64_t localOffset, uint64_t remoteOffset,
             size_t size, std::chrono::nanoseconds timeout) const;
  Result<std::shared_ptr<TransferState>> start(OpKind kind,
                                               std::shared_ptr<const LocalMemory> local,
                                               std::vector<Shape> shapes,
                                               std::shared_ptr<const RemoteMapping> self) const;

 private:
  Status explainRefusal(OpKind kind, const LocalMemory& local) const;
  Route routeFrom(const LocalMemory& local) const;

  const std::shared_ptr<NodeImpl> node_;
  const std::shared_ptr<PeerState> peer_;
  const size_t transport_;
  Engine& engine_;
  const std::shared_ptr<Link> link_;
  const std::unique_ptr<RemoteMemory> memory_;  // goes before link_
  const Device device_;
  const std::chrono::milliseconds lease_;
};

}  // namespace hmc
