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

// Memory that a copy starts or ends in: a slot, registered memory of ours, or else just what the
// copy touches.
struct CopyEnd {
  char* begin = nullptr;  // of a slot: the same in every process
  uint64_t size = 0;
  Device device;
  bool visible = false;  // to this process, at `begin`
  std::shared_ptr<LocalMemory> own;
  std::shared_ptr<RemoteMapping> peers;
  Place place;  // of a peer's slot

  uint64_t offsetOf(const void* address) const {
    return static_cast<uint64_t>(static_cast<const char*>(address) - begin);
  }
  bool has(const void* address, size_t bytes) const { return fits(offsetOf(address), bytes, size); }
  bool onHost() const { return visible && device.isHost(); }
  // Other copies may start or end here, too, without being looked up.
  bool known() const { return own || peers; }
  Region part(const void* address, size_t bytes) const {
    return {visible ? begin + offsetOf(address) : nullptr, bytes, device};
  }
};

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
  // What the parts of start() have in common. How many of the first copies the processor made by
  // itself: some megabytes at the most, all between the same two slots. With `much`, more follow,
  // and all of them do not fit into caches.
  size_t copyRun(std::span<const PoolCopy> copies, bool much) const;
  // Connects to a member if need be.
  Result<CopyEnd> resolve(const void* address, size_t size, Deadline deadline) const;

  // Copies of this memory need not be prepared one by one.
  Status registerMemory(void* data, size_t size);
  Status unregisterMemory(void* data);

 private:
  // Up to here a copy is short against anything that would look at a deadline.
  static constexpr size_t kAtOnce = size_t{1} << 20;
  static constexpr size_t kChunk = size_t{8} << 20;
  // Of a copy2d() that are listed at a time: a count that cannot be shall not fill the memory.
  static constexpr size_t kMostRows = size_t{1} << 20;

  // Which members the pieces of one copy go between: Slot::opening().
  struct Between {
    uint64_t to = 0;
    uint64_t from = 0;
    bool known = false;
    bool taken = false;  // the last piece was stopped: a member's memory is gone
  };

  // With `between`, only where the members are the same as in the piece before.
  bool copyAtOnce(void* to, const void* from, size_t size, Between* between = nullptr) const;
  Status copySlowly(void* to, const void* from, size_t size, Timeout timeout);
  std::optional<Status> transferAlone(void* to, const void* from, size_t size,
                                      Deadline deadline) const;
  Status checkRows(const void* at, size_t pitch, const Rows& rows) const;
  Status copyDirectly(void*& to, const void*& from, size_t& size, Deadline deadline) const;
  Status stoppedHalfway(const void* to, const void* from, size_t size, Deadline deadline) const;
  Result<CopyEnd> resolveSlot(const Place& place, size_t size, Deadline deadline) const;
  std::shared_ptr<LocalMemory> registeredAround(const void* address, size_t size) const;

  NodeImpl& node_;
  const AddressSpace& addresses_;
  Members& members_;
  mutable std::shared_mutex mutex_;
  std::map<const char*, std::shared_ptr<LocalMemory>> registered_;  // guarded by mutex_
};

}  // namespace hmc::pool
