#pragma once

// A pool: host and device memory of many processes in one address space. Slot r begins at
// base + r x stride, at the same address in every process. Members come and go at any time; a
// store tells them of each other.
//
// The slots of processes on the same host are mapped: any pointer into them can be read and
// written. The slots of other hosts are reached by copy(); touching them through a pointer faults.
//
// All classes are cheap handles, safe from any thread. Calls that can wait take a timeout.

#include "hmc/cpp17.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hmc/device.h"
#include "hmc/export.h"
#include "hmc/node.h"
#include "hmc/result.h"

namespace hmc {

class PoolImpl;
class PoolCopyState;

/// Which of a rank's two slots.
enum class PoolSpace : uint8_t { host, device };

/// What a member brings, and how it is reached.
struct PoolOptions {
  std::string name = "pool";     ///< several pools may share one store
  std::optional<uint32_t> rank;  ///< none: the lowest that is free
  /// The most members that the pool may ever have. Addresses are set aside for all of them; that
  /// costs no memory. The first member decides, others may leave it 0.
  uint32_t capacity = 0;

  /// What this process brings. 0 is fine: it can still copy.
  size_t hostSize = 0;
  size_t deviceSize = 0;
  /// The distance between two slots: the most that any member may bring, rounded up to 2 MiB. The
  /// first member decides; 0 takes its own size, or what the first member decided.
  size_t hostStride = 0;
  size_t deviceStride = 0;
  Device device;                ///< where deviceSize lies; the host when there is no accelerator
  std::optional<int> numaNode;  ///< where hostSize lies
  /// A memory file (memfd_create(2) with MFD_ALLOW_SEALING) whose first hostSize bytes are the host
  /// slot, with what is in them. It is sealed against shrinking. The caller keeps the descriptor,
  /// and may close it after join().
  std::optional<int> hostFile;

  /// Serves the store at its address from this process, unless somebody does already. It ends with
  /// the Pool.
  bool serveStore = false;
  /// Where peers reach us; empty: the address from which this host reaches the store, any port.
  std::string listen;
  /// Name, secret and encryption are taken from here, too; the latter two are also the store's.
  NodeOptions node;
};

/// Part of a pool that one member brought.
struct PoolSlot {
  uint32_t rank = 0;
  PoolSpace space = PoolSpace::host;
  void* address = nullptr;  ///< the same in every process
  size_t size = 0;
  Device device;
  bool mapped = false;  ///< it can be read and written through `address`
};

/// A member came or went.
struct PoolEvent {
  /// Which of the two.
  enum class Kind : uint8_t { joined, left };
  Kind kind;
  uint32_t rank;
  Status reason;  ///< why it left: ok when it said so itself
};

/// One of a batch.
struct PoolCopy {
  void* to;
  const void* from;
  size_t size;
};

/// Copies on their way. Dropping the handle does not stop them.
class HMC_API PoolTicket {
 public:
  /// The first failure of them all, if there was one.
  Status wait(Timeout timeout = kDefaultTimeout);
  bool done();  ///< Whether wait() would return at once.
  /// When this returns, no byte of them moves any more.
  Status cancel();
  /// The outcome of each, once done; by their order in the batch.
  const std::vector<Status>& outcomes() const;

 private:
  friend class Pool;
  explicit PoolTicket(std::shared_ptr<PoolCopyState> state) : state_(std::move(state)) {}
  std::shared_ptr<PoolCopyState> state_;
};

/// A member of a pool: see the top of this file.
class HMC_API Pool {
 public:
  /// `store` is "tcp://host:port" of a store (`hmc store`, or one that a member serves), or
  /// "etcd://host:port,host:port" of an etcd, "etcds://..." with TLS (docs/pool.md). An empty one
  /// means that of the launcher (`hmc pool run`, torchrun, mpirun, srun, or HMC_POOL_STORE), who
  /// then also says rank and capacity where the options do not. Returns when every member of this
  /// host has mapped our slots and we theirs. A store that stops answering meanwhile has a second
  /// to hear our goodbye, beyond the timeout.
  [[nodiscard]] static Result<Pool> join(const std::string& store, const PoolOptions& options,
                                         Timeout timeout = kDefaultTimeout);
  /// Leaves. Where neither members nor the store answer, that takes up to five leases.
  ~Pool();
  Pool(Pool&&) noexcept;
  Pool& operator=(Pool&&) noexcept;

  uint32_t rank() const;      ///< Ours.
  uint32_t capacity() const;  ///< The most members that it may have.
  /// Ranks that are here now, our own included.
  std::vector<uint32_t> ranks() const;

  void* base(PoolSpace space = PoolSpace::host) const;     ///< Where slot 0 begins.
  size_t stride(PoolSpace space = PoolSpace::host) const;  ///< From one slot to the next.
  /// notFound when that rank is not here.
  Result<PoolSlot> slot(uint32_t rank, PoolSpace space = PoolSpace::host) const;
  /// Whose slot an address lies in.
  Result<PoolSlot> slotOf(const void* address) const;

  /// Between any two memories: slots of this pool, ours or others', and memory of this process.
  /// Returns when the bytes are in place. A timeout cancels.
  Status copy(void* to, const void* from, size_t size, Timeout timeout = kDefaultTimeout) const;
  /// `rows` rows of `width` bytes that lie `toPitch` and `fromPitch` apart.
  Status copy2d(void* to, size_t toPitch, const void* from, size_t fromPitch, size_t width,
                size_t rows, Timeout timeout = kDefaultTimeout) const;
  /// Start and return. Copies of one batch run in any order; neighbours are joined. The first copy
  /// to a member of another host connects to it, for which there is the timeout.
  [[nodiscard]] Result<PoolTicket> startCopy(const std::vector<PoolCopy>& copies,
                                             Timeout timeout = kDefaultTimeout) const;

  /// Memory that copies to and from other hosts shall not pass through a buffer for, until it is
  /// unregistered. It must stay valid until then.
  Status registerMemory(void* data, size_t size);
  Status unregisterMemory(void* data);  ///< Takes that back; copies that are under way end first.

  /// Joins and leaves of others, in order; the members that were here first come first.
  /// Disconnected once we have left and all were taken.
  Result<PoolEvent> nextEvent(Timeout timeout = kDefaultTimeout);
  /// For poll(2) and its kin: readable while nextEvent() would return at once.
  Result<int> eventFd();

  /// Gives the slots back: returns when no member reaches them any more. Copies of ours end first.
  /// A member that does not answer in time is disconnected, which takes up to twice the lease
  /// longer.
  Status leave(Timeout timeout = kDefaultTimeout);

 private:
  explicit Pool(std::shared_ptr<PoolImpl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<PoolImpl> impl_;
};

}  // namespace hmc
