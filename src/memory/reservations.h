#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "memory/backend.h"
#include "memory/mapping.h"

namespace hmc {

// Addresses that are set aside, without access, and which parts of them are in use.
struct ReservedRange {
  std::shared_ptr<void> addresses;  // at least what callers see, whose first byte is `first`
  char* first;
  size_t size;
  size_t unit;                                // places begin at multiples of it
  void (*setAside)(char*, size_t) = nullptr;  // makes a place that is given back harmless
  std::mutex mutex;
  std::map<char*, size_t> inUse;  // guarded by mutex
};

// What lies at addresses that were asked for, as far as the kernel tells.
Status addressesTaken(size_t size, const void* at);

// The reservations of a backend whose addresses the kernel hands out. Safe from any thread.
class Reservations {
 public:
  static constexpr size_t kAlignment = kHugePage;

  // Addresses that the kernel sets aside, at `at` unless that is null.
  Result<std::unique_ptr<Reservation>> reserve(const Device& device, size_t size, void* at);
  // Addresses that the caller has set aside.
  std::unique_ptr<Reservation> add(const Device& device, std::shared_ptr<ReservedRange> range);
  // Takes `size` bytes at `at`, which must be free and lie in one of our reservations.
  Result<Mapping> take(void* at, size_t size);

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<ReservedRange>> ranges_;  // guarded by mutex_
};

}  // namespace hmc
