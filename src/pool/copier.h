#pragma once

#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <span>
#include <vector>

#include "hmc/pool.h"
#include "memory/device_of.h"
#include "node/node_impl.h"
#include "pool/copy_state.h"
#include "pool/members.h"

namespace hmc::pool {

// Copies between slots of a pool and memory of this process. Safe from any thread.
class Copier {
 public:
  // All outlive it.
  Copier(NodeImpl& node, const AddressSpace& addresses, Members& members)
      : node_(node), addresses_(addresses), members_(members) {}

  Status copy(void* to, const void* from, size_t size, Timeout timeout) {
    if (size <= kAtOnce && copyAtOnce(to, from, size)) [[likely]]
      return Status();
    return copySlowly(to, from, size, timeout);
  }
  struct Rows {
    void* to;
    size_t toPitch;
    const void* from;
    size_t fromPitch;
    size_t width;
    size_t count;
  };
  Status copy2d(const Rows& rows, Timeout timeout);
  Result<std::shared_ptr<PoolCopyState>> start(const std::vector<PoolCopy>& copies,
                                               Deadline deadline);

  // Copies of this memory need not be prepared one by one.
  Status registerMemory(void* data, size_t size);
  Status unregisterMemory(void* data);

 private:
  // Up to here a copy is short against anything that would look at a deadline.
  static constexpr size_t kAtOnce = size_t{1} << 20;
  static constexpr size_t kChunk = size_t{8} << 20;

  // One end of a copy.
  struct End {
    Region region;                         // as this process sees it; no pointer where it does not
    std::shared_ptr<LocalMemory> own;      // around it, where it is known: our slot, or registered
    std::shared_ptr<RemoteMapping> peers;  // of a peer's slot
    uint64_t offset = 0;                   // in `own` or `peers`
    Place place;                           // of a peer's slot
    bool onHost() const { return region.ptr && region.device.isHost(); }
  };
  // Copies that one engine makes, or a device by itself.
  struct Work;
  // Which members the pieces of one copy go between: Slot::opening().
  struct Between {
    uint64_t to = 0;
    uint64_t from = 0;
    bool known = false;
  };

  // `partOfMuch`: other pieces follow, and all of them do not fit into caches. With `between`, only
  // where the members are the same as in the piece before.
  bool copyAtOnce(void* to, const void* from, size_t size, bool partOfMuch = false,
                  Between* between = nullptr) const;
  Status copySlowly(void* to, const void* from, size_t size, Timeout timeout);
  std::optional<Status> transferAlone(void* to, const void* from, size_t size,
                                      Deadline deadline) const;
  Status checkRows(const void* at, size_t pitch, const Rows& rows) const;
  Status copyDirectly(void*& to, const void*& from, size_t& size, Deadline deadline) const;
  Status stoppedHalfway(const void* to, const void* from, size_t size, Deadline deadline) const;
  Result<End> resolve(const void* address, size_t size, Deadline deadline) const;
  Result<End> resolveSlot(const Place& place, size_t size, Deadline deadline) const;
  std::shared_ptr<LocalMemory> registeredAround(const void* address, size_t size) const;
  Status plan(const PoolCopy& copy, size_t index, Work& work, Deadline deadline) const;
  void prepare(Work& work, PoolCopyState& state) const;
  void post(Work& work, PoolCopyState& state) const;

  NodeImpl& node_;
  const AddressSpace& addresses_;
  Members& members_;
  mutable std::shared_mutex mutex_;
  std::map<const char*, std::shared_ptr<LocalMemory>> registered_;  // guarded by mutex_
};

}  // namespace hmc::pool
