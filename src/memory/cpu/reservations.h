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
  std::shared_ptr<void> addresses;  // at least what callers see, whose first byte is `first`
  char* first;
  size_t size;
  size_t unit;                                // places begin at multiples of it
  void (*setAside)(char*, size_t) = nullptr;  // called for a place that is given back
  std::mutex mutex;
  std::map<char*, size_t> inUse;  // guarded by mutex
};

// A part of a reservation that is in use. At the end its addresses are set aside again, whatever
// was mapped there: never a hole that somebody else could be given.
class Place {
 public:
  Place(std::shared_ptr<ReservedRange> range, char* at, size_t size)
      : range_(std::move(range)), at_(at), size_(size) {}
  Place(Place&& other) noexcept = default;
  Place& operator=(Place&&) = delete;
  ~Place();

  char* get() const { return at_; }
  size_t size() const { return size_; }

 private:
  std::shared_ptr<ReservedRange> range_;  // null once moved from
  char* at_;
  size_t size_;
};

// The reservations of a backend whose addresses the kernel hands out. Safe from any thread.
class Reservations {
 public:
  static constexpr size_t kAlignment = size_t{2} << 20;  // of a huge page

  // Addresses that the kernel sets aside.
  Result<std::unique_ptr<Reservation>> reserve(const Device& device, size_t size);
  // Addresses that the caller has set aside.
  std::unique_ptr<Reservation> add(const Device& device, std::shared_ptr<ReservedRange> range);
  // Takes `size` bytes at `at`, which must be free and lie in one of our reservations.
  Result<Place> take(void* at, size_t size);

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<ReservedRange>> ranges_;  // guarded by mutex_
};

}  // namespace hmc
