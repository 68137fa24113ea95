#pragma once

#include <memory>
#include <string>

#include "hmc/deadline.h"
#include "hmc/result.h"
#include "pool/address_space.h"
#include "store/store.h"

namespace hmc::pool {

// What one process wants of a pool's layout. 0 leaves it to the others.
struct Wish {
  uint32_t capacity = 0;
  std::array<uint64_t, 2> sizes{};    // what it brings, by PoolSpace
  std::array<uint64_t, 2> strides{};  // the same, at least its size or 0
};

// The layout of a pool, the same for all processes that hold one of these: the first decides, and a
// layout that nobody holds any more is replaced. Where the addresses are taken in a later process,
// that one cannot take part.
struct Agreement {
  // `name` is the pool's. Errors name the option and both values.
  static Result<Agreement> reach(const std::shared_ptr<store::Store>& store,
                                 const std::string& name, const Wish& wish, Backend& device,
                                 std::chrono::milliseconds ttl, Deadline deadline);

  AddressSpace addresses;
  std::shared_ptr<store::KeyLease> held;  // says in the store that the layout is in use
};

}  // namespace hmc::pool
