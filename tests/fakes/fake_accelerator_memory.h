#pragma once

#include <map>
#include <mutex>

#include "memory/backend.h"
#include "memory/cpu/shared_memory.h"

namespace hmc {

// The memory of a FakeAccelerator. The processor that touches its addresses crashes, because they
// are reserved and never mapped; the bytes live elsewhere. Safe from any thread.
class FakeMemory {
 public:
  explicit FakeMemory(const Backend& owner) : owner_(owner) {}

  Result<Region> allocate(int index, size_t size);
  Result<Region> attach(const Share& share, int index, void* at);
  Status remove(const void* ptr, bool attached);
  Result<Region> locate(const void* ptr);
  Result<Share> share(const Region& region);
  Result<std::unique_ptr<Reservation>> reserve(size_t size, void* at);

  // Where the bytes of a region are, on the host or on one of our devices.
  Result<char*> bytesOf(const Region& region);
  size_t count();

 private:
  struct Block {
    Mapping address;  // what callers see
    Mapping bytes;
    char* first;  // the block's first byte within `bytes`
    Fd fd;        // not set for attached blocks
    size_t size;
    int index;
    bool attached;
  };
  using Blocks = std::map<const char*, Block>;

  Device device(int index) const { return {owner_.facts().kind, index}; }
  Result<Region> add(char* ptr, Block block);

  const Backend& owner_;
  Reservations reservations_;
  std::mutex mutex_;  // guards the table, not the memory that it describes
  Blocks blocks_;     // by address
};

}  // namespace hmc
