#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/fork_guard.h"
#include "hmc/node.h"
#include "node/atomic_change.h"
#include "node/descriptions.h"
#include "node/local_memory.h"
#include "node/path_chooser.h"
#include "node/peer_state.h"
#include "node/wanted_region.h"
#include "transport/mapped_copy.h"

namespace hmc {

// A peer's region as one link reaches it.
struct OpenPath {
  OpenPath(size_t index, Engine& over, std::shared_ptr<Link> to, std::unique_ptr<RemoteMemory> what)
      : transport(index),
        engine(over),
        link(std::move(to)),
        memory(std::move(what)),
        size(memory->size),
        access(memory->access) {}
  // Reaches only slots at the target; `why` says for what reason.
  OpenPath(size_t index, Engine& over, std::shared_ptr<Link> to, std::shared_ptr<FarStage> stage,
           const RegionDescription& region, std::string why)
      : transport(index),
        engine(over),
        link(std::move(to)),
        far(std::move(stage)),
        farBecause(std::move(why)),
        size(region.size),
        access(region.access) {}
  const std::string& name() const { return engine.transport().facts().name; }
  // "ipc (mapped)"
  std::string describe() const;
  // What the link moves bytes in and out of: the region, or the slots.
  const RemoteMemory& reached() const { return far ? far->slots() : *memory; }
  // Why a quicker way is not taken; empty when there is none.
  const std::string& slowerBecause() const { return far ? farBecause : memory->slowerBecause(); }

  const size_t transport;  // the Node's
  Engine& engine;
  const std::shared_ptr<Link> link;
  const std::unique_ptr<RemoteMemory> memory;  // goes before link; none where `far` is
  const std::shared_ptr<FarStage> far;         // the same
  const std::string farBecause;
  const uint64_t size;
  const Access access;
  // The link failed: transfers take the other paths from then on, if there are any.
  std::atomic<bool> ended{false};
};

// A peer's region, opened over one path or several that share the sizes. Safe from any thread.
class RemoteMapping {
 public:
  // At least one path; the tables hold indexes of them. `number` is what the owner calls it.
  RemoteMapping(std::shared_ptr<NodeImpl> node, std::shared_ptr<PeerState> peer, std::string name,
                uint64_t number, std::unique_ptr<GrantedOpening> granted,
                std::vector<std::unique_ptr<OpenPath>> paths, PathTables tables, Device device);
  ~RemoteMapping();

  uint64_t size() const { return size_; }
  Access access() const { return writable_ ? Access::readWrite : Access::read; }
  Device device() const { return device_; }
  // Of the path that the smallest puts take.
  const std::string& transport() const;
  // "ipc (mapped)"; of several paths each with its sizes.
  std::string path() const;
  // What a transfer that was started here takes; null for one that was done at once.
  std::string pathOf(const TransferState* transfer) const;

  Status checkFork() const { return fork_.inChild() ? ForkGuard::refusal() : Status(); }

  bool mapped() const { return mapped_.data != nullptr; }
  char* data() const { return mapped_.data; }
  // Of RemoteRegion.
  bool waitsForNobody(const LocalMemory& local, void* stream) const;

  // The peer takes its region back: transfers fail from now on. `released` is told when no thread
  // touches it any more, once for each path.
  void revoke(const std::function<void(const Status&)>& released);
  Status revokedStatus() const;
  // Its owner took it back, or is gone: a copy that was under way need not have reached it. ok
  // until then.
  bool taken() const { return mapped() ? takenMeanwhile() : revoked_.load(); }
  Status takenStatus() const;

  Status run(OpKind kind, const LocalMemory& local, uint64_t localOffset, uint64_t remoteOffset,
             size_t size, std::chrono::nanoseconds timeout) const {
    if (copyAtOnce(kind, local, localOffset, remoteOffset, size)) [[likely]]
      return Status();
    return runThroughEngine(kind, local, localOffset, remoteOffset, size, timeout);
  }
  // Does all of it here and now; false, and nothing done, when it is more than that or not allowed.
  bool copyAtOnce(OpKind kind, const LocalMemory& local, uint64_t localOffset,
                  uint64_t remoteOffset, size_t size) const {
    if (size - 1 >= atOnce_[static_cast<size_t>(kind)].load(std::memory_order_relaxed) ||
        !fits(localOffset, size, local.region().size) || !fits(remoteOffset, size, size_) ||
        !copies(kind, local) || !watched(size)) {
      return false;
    }
    copyOf(kind, local, localOffset, remoteOffset, size).run();
    mappedCounters_->count(1, size);
    return !takenMeanwhile();
  }
  // The same for memory of the host that is not registered.
  bool copyAtOnce(OpKind kind, char* local, uint64_t remoteOffset, size_t size) const {
    return size - 1 < atOnce_[static_cast<size_t>(kind)].load(std::memory_order_relaxed) &&
           !fork_.inChild() && copyMapped(kind, local, remoteOffset, size);
  }
  // The same for any memory of the host, of any size: for callers that bound how long a copy takes.
  bool copyMapped(OpKind kind, char* local, uint64_t remoteOffset, size_t size) const {
    if (!fits(remoteOffset, size, size_) || !mayCopyMapped(kind) || !watched(size)) return false;
    MappedCopy(kind, local, mapped_.data + remoteOffset, size).run();
    mappedCounters_->count(1, size);
    return !takenMeanwhile();
  }
  // The same for several copies (`to`, `from`, `size`), one of whose ends is at data(): checked,
  // counted and ordered with later stores once for all of them. With `stream`, they are pieces of
  // something large.
  template <class Copy>
  bool copyMapped(OpKind kind, std::span<const Copy> copies, bool stream) const {
    if (!mayCopyMapped(kind) || revoked_.load(std::memory_order_relaxed)) return false;
    uint64_t total = 0;
    for (const Copy& copy : copies) {
      auto* const remote = static_cast<const char*>(kind == OpKind::put ? copy.to : copy.from);
      if (!fits(static_cast<uint64_t>(remote - mapped_.data), copy.size, size_)) return false;
      total += copy.size;
    }
    if (!watched(total)) return false;
    StreamedCopies streamed;
    for (const Copy& copy : copies) {
      stream ? streamed.copy(copy.to, copy.from, copy.size)
             : copyHost(copy.to, copy.from, copy.size);
    }
    streamed.finish();
    mappedCounters_->count(copies.size(), total);
    return !takenMeanwhile();
  }
  // Where the region is mapped, our processor does it, else the owner's: see RemoteRegion.
  Result<uint64_t> changeAtomically(const AtomicChange& change, Deadline deadline) const;
  // For the handles of node.h; `self` is what they share.
  using Self = std::shared_ptr<RemoteMapping>;
  static Result<Ticket> start(const Self& self, OpKind kind,
                              const std::shared_ptr<LocalMemory>& local,
                              const std::vector<Block>& blocks, const StreamOrder& order = {});
  static Result<Ticket> start(const Self& self, OpKind kind,
                              const std::shared_ptr<LocalMemory>& local, const Strided& strided,
                              const StreamOrder& order = {});
  static Result<Ticket> start(const Self& self, OpKind kind,
                              const std::shared_ptr<LocalMemory>& local, Pieces pieces,
                              const StreamOrder& order = {});
  Result<std::shared_ptr<TransferState>> start(OpKind kind,
                                               std::shared_ptr<const LocalMemory> local,
                                               Pieces pieces,
                                               std::shared_ptr<const RemoteMapping> self,
                                               std::shared_ptr<DeviceEvent> after = nullptr) const;
  // A transfer that was started here ended like this. Answers what to say about it.
  Status noteEnd(const TransferState& transfer, const Status& outcome) const;

 private:
  // The path of a transfer that consists of such pieces, as far as the choice goes; one that cannot
  // serve gives way to another that can.
  OpenPath& pathFor(OpKind kind, const LocalMemory& local, uint64_t piece) const;
  bool serves(const OpenPath& path, const LocalMemory& local) const;
  std::string pathsBySize(const PathTable& table) const;

  // Up to here a copy, and a list of them, are short against anything that would look at a
  // deadline.
  static constexpr size_t kAtOnce = size_t{1} << 20;
  static constexpr size_t kListAtOnce = size_t{8} << 20;

  // Whether a transfer is nothing but a copy, as far as the two memories go.
  bool copies(OpKind kind, const LocalMemory& local) const {
    return mapped_.data && local.host() && local.node() == node_.get() &&
           (kind == OpKind::get || writable_) && !fork_.inChild() &&
           !mapped_.closed->load(std::memory_order_acquire);
  }
  bool mayCopyMapped(OpKind kind) const {
    return mapped_.data && (kind == OpKind::get || writable_) &&
           !mapped_.closed->load(std::memory_order_acquire);
  }
  // Asked after a copy, which may have gone to the pages that took the region's place. The
  // processor cannot have read the answer before these were there, since mmap() interrupts it.
  bool takenMeanwhile() const {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return revoked_.load(std::memory_order_relaxed) ||
           mapped_.closed->load(std::memory_order_relaxed);
  }
  // May so many bytes be copied, as far as time goes?
  bool watched(size_t size) const { return size < Mapped::kUnwatched || mapped_.lease->held(); }
  MappedCopy copyOf(OpKind kind, const LocalMemory& local, uint64_t localOffset,
                    uint64_t remoteOffset, size_t size) const {
    return {kind, local.host() + localOffset, mapped_.data + remoteOffset, size};
  }
  // copyAtOnce() for a list.
  bool copyAtOnce(OpKind kind, const LocalMemory& local, const std::vector<Block>& blocks) const;

  Status runThroughEngine(OpKind kind, const LocalMemory& local, uint64_t localOffset,
                          uint64_t remoteOffset, size_t size,
                          std::chrono::nanoseconds timeout) const;
  bool allowed(OpKind kind, const LocalMemory& local) const;
  Status explainRefusal(OpKind kind, const LocalMemory& local) const;
  Route routeFrom(const LocalMemory& local, const OpenPath& path) const;
  // A transfer over it ended like this.
  void note(OpenPath& path, const Status& outcome) const;

  const std::shared_ptr<NodeImpl> node_;
  const std::shared_ptr<PeerState> peer_;
  const std::string name_;
  const uint64_t number_;
  const std::unique_ptr<GrantedOpening> granted_;  // goes after the paths; none by name
  const std::vector<std::unique_ptr<OpenPath>> paths_;
  const PathTables tables_;
  // What a copy looks at, together: the path that is mapped here, if there is one, up to which size
  // it is the one to take, by OpKind, and that much or kAtOnce, or 0 once it is revoked.
  const ForkGuard fork_;
  const Mapped mapped_;
  TransportCounters* const mappedCounters_;  // of that path's transport
  const std::array<uint64_t, 2> mappedUpTo_;
  std::array<std::atomic<uint64_t>, 2> atOnce_;
  std::atomic<bool> revoked_{false};
  const uint64_t size_;
  const bool writable_;
  const Device device_;
  const std::chrono::milliseconds lease_;
};

}  // namespace hmc
