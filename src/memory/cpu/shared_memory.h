#pragma once

#include <cstddef>
#include <cstdint>

#include "base/fd.h"
#include "hmc/result.h"
#include "memory/mapping.h"
#include "memory/reservations.h"

namespace hmc {

// Zero-filled memory that another process can map once it has the descriptor. The file is sealed:
// nobody who has the descriptor can change its size, so no access to a mapping of it can fault.
struct SharedMemory {
  Fd fd;
  Mapping mapping;
};

// Huge pages when `size` is a multiple of them and enough are free, ordinary pages otherwise; these
// are taken when they are first touched. `exhausted` when the machine can never hold `size` bytes.
Result<SharedMemory> createSharedMemory(size_t size);

// The first `size` bytes of a memory file of the caller's, which keeps its own descriptor. Seals
// the file against shrinking, and refuses one that cannot be.
Result<SharedMemory> adoptSharedMemory(int fd, size_t size);

// Bytes [offset, offset + size) of somebody's SharedMemory, and the mapping around them.
struct Window {
  Mapping mapping;
  char* ptr = nullptr;
};

// Refuses a descriptor whose file can still shrink or is too short: touching it could kill us.
// With `at` the first byte lies there, a place in one of the reservations.
Result<Window> mapWindow(int fd, uint64_t offset, uint64_t size, void* at = nullptr,
                         Reservations* reservations = nullptr);

}  // namespace hmc
