#pragma once

#include <map>
#include <mutex>

#include "memory/backend.h"
#include "memory/cpu/shared_memory.h"
#include "memory/populate.h"

namespace hmc {

// Host memory. What allocate() makes is page-aligned shared memory that peers on this host can map.
// There is no queue: copies are finished when copy() returns, and recorded events have passed.
class CpuBackend final : public Backend {
 public:
  CpuBackend();

  Result<Region> allocate(int index, size_t size) override;
  // Memory in a file of the caller's, see adoptSharedMemory(); to be released as well.
  Result<Region> adopt(int fd, size_t size);
  Status release(void* ptr) override;
  Status copy(const CopyBatch& batch, const DeviceQueue& queue) override;
  Result<std::unique_ptr<DeviceEvent>> event(int index) override;
  Result<Region> locate(const void* ptr) override;
  Result<Share> share(const Region& region, ShareFor purpose) override;
  Result<std::unique_ptr<Reservation>> reserve(size_t size, void* at) override;
  Result<Region> attach(const Share& share, void* at) override;
  Status detach(const Region& region) override;
  Result<std::unique_ptr<PinnedMemory>> pin(const Region& host) override;

 private:
  struct Allocation {
    SharedMemory memory;
    size_t size;
    Population pages;  // goes before the memory
  };
  Region keep(SharedMemory memory, size_t size);

  using Allocations = std::map<const char*, Allocation>;
  using Attachments = std::map<const char*, Mapping>;

  Reservations reservations_;
  // Guards the two tables, not the memory that they describe.
  std::mutex mutex_;
  Allocations allocations_;  // by first byte
  Attachments attached_;     // by first byte of the Region that attach() returned
};

}  // namespace hmc
