#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/fork_guard.h"
#include "hmc/node.h"
#include "memory/quick_copy.h"
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
             size_t size, std::chrono::nanoseconds timeout) const {
    if (copyAtOnce(kind, local, localOffset, remoteOffset, size)) [[likely]]
      return Status();
    return runThroughEngine(kind, local, localOffset, remoteOffset, size, timeout);
  }
  // For the handles of node.h; `self` is what they share.
  using Self = std::shared_ptr<RemoteMapping>;
  static Result<Ticket> start(const Self& self, OpKind kind,
                              const std::shared_ptr<LocalMemory>& local,
                              const std::vector<Block>& blocks);
  static Result<Ticket> start(const Self& self, OpKind kind,
                              const std::shared_ptr<LocalMemory>& local, const Strided& shape);
  Result<std::shared_ptr<TransferState>> start(OpKind kind,
                                               std::shared_ptr<const LocalMemory> local,
                                               std::vector<Shape> shapes,
                                               std::shared_ptr<const RemoteMapping> self) const;

 private:
  // Up to here a copy, and a list of them, are short against anything that would look at a
  // deadline.
  static constexpr size_t kAtOnce = size_t{1} << 20;
  static constexpr size_t kListAtOnce = size_t{8} << 20;

  // Whether a transfer is nothing but a copy, as far as the two memories go.
  bool copies(OpKind kind, const LocalMemory& local) const {
    return mapped_.data && local.host() && local.node() == node_.get() &&
           (kind == OpKind::get || writable_) && !inForkedChild() &&
           !mapped_.closed->load(std::memory_order_acquire);
  }
  void copy(OpKind kind, const LocalMemory& local, uint64_t localOffset, uint64_t remoteOffset,
            size_t size) const {
    char* here = local.host() + localOffset;
    char* there = mapped_.data + remoteOffset;
    kind == OpKind::put ? quickCopy(there, here, size) : quickCopy(here, there, size);
  }
  // Do all of it here and now; false, and nothing done, when it is more than that or not allowed.
  bool copyAtOnce(OpKind kind, const LocalMemory& local, const std::vector<Block>& blocks) const;
  bool copyAtOnce(OpKind kind, const LocalMemory& local, uint64_t localOffset,
                  uint64_t remoteOffset, size_t size) const {
    if (size - 1 >= kAtOnce || !fits(localOffset, size, local.region().size) ||
        !fits(remoteOffset, size, size_) || !copies(kind, local)) {
      return false;
    }
    copy(kind, local, localOffset, remoteOffset, size);
    return true;
  }

  Status runThroughEngine(OpKind kind, const LocalMemory& local, uint64_t localOffset,
                          uint64_t remoteOffset, size_t size,
                          std::chrono::nanoseconds timeout) const;
  bool allowed(OpKind kind, const LocalMemory& local) const;
  Status explainRefusal(OpKind kind, const LocalMemory& local) const;
  Route routeFrom(const LocalMemory& local) const;

  const std::shared_ptr<NodeImpl> node_;
  const std::shared_ptr<PeerState> peer_;
  const size_t transport_;
  Engine& engine_;
  const std::shared_ptr<Link> link_;
  const std::unique_ptr<RemoteMemory> memory_;  // goes before link_
  // Of memory_, at hand.
  const Mapped mapped_;
  const uint64_t size_;
  const bool writable_;
  const Device device_;
  const std::chrono::milliseconds lease_;
};

}  // namespace hmc
