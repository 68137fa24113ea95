#pragma once

#include <map>
#include <mutex>

#include "memory/backend.h"
#include "memory/cpu/shared_memory.h"

namespace hmc {

// Host memory. What allocate() makes is page-aligned shared memory that peers on this host can map.
// Copies are finished when copy() returns, stream or not.
class CpuBackend final : public Backend {
 public:
  CpuBackend();

  Result<Region> allocate(int index, size_t size) override;
  Status release(void* ptr) override;
  Status copy(const Region& dst, const Region& src, const Stream* stream) override;
  Status wait(const Stream& stream) override;
  Result<Region> locate(const void* ptr) override;
  Result<Share> share(const Region& region) override;
  Result<Region> attach(const Share& share) override;
  Status detach(const Region& region) override;

 private:
  struct Allocation {
    SharedMemory memory;
    size_t size;
  };
  using Allocations = std::map<const char*, Allocation>;

  // The allocation around ptr, or the end. Called with mutex_ held.
  Allocations::const_iterator around(const void* ptr) const;

  // Guards the two tables, not the memory that they describe.
  std::mutex mutex_;
  Allocations allocations_;                  // by first byte
  std::map<const char*, Mapping> attached_;  // by first byte of the Region that attach() returned
};

}  // namespace hmc
