#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "memory/backend.h"
#include "memory/cpu/mapping.h"

namespace hmc {

// Addresses that are set aside, without access, and which parts of them are in use.
struct ReservedRange {
  Mapping addresses;  // at least what callers see, whose first byte is `first`
  char* first;
  size_t size;
  std::mutex mutex;
  std::map<char*, size_t> inUse;  // guarded by mutex
};

// The reservations of a backend whose addresses the kernel hands out. Safe from any thread.
class Reservations {
 public:
  static constexpr size_t kAlignment = size_t{2} << 20;  // of a huge page

  Result<std::unique_ptr<Reservation>> reserve(const Device& device, size_t size);
  // Takes `size` bytes at `at`, which must be free and lie in one of our reservations.
  Result<Mapping> take(void* at, size_t size);

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<ReservedRange>> ranges_;  // guarded by mutex_
};

}  // namespace hmc
