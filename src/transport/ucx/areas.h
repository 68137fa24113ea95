#pragma once

#include <mutex>
#include <unordered_map>

#include "hmc/access.h"
#include "hmc/status.h"
#include "memory/host_copy.h"
#include "memory/region.h"

namespace hmc::ucx {

// The memory of one transport that messages reach, by an unguessable number: a peer reaches what
// it was given a key of. Safe from any thread.
class Areas {
 public:
  uint64_t add(const Region& region, Access access);
  // When it returns, no message moves a byte of it any more.
  void remove(uint64_t id);

  // `row` is where the last put of the same peer went.
  Status put(uint64_t id, uint64_t offset, const void* bytes, size_t size, RowCopy& row);
  Status get(uint64_t id, uint64_t offset, void* bytes, size_t size);

 private:
  struct Area {
    Region region;
    Access access;
  };
  Status check(uint64_t id, uint64_t offset, size_t size, bool put) const;

  std::mutex mutex_;  // held while bytes move
  std::unordered_map<uint64_t, Area> areas_;
};

}  // namespace hmc::ucx
