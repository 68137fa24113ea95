#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "hmc/deadline.h"
#include "hmc/result.h"
#include "store/store.h"

namespace hmc::pool {

// Numbers that processes hand out to each other, each to one at a time, through the store. Those of
// a process that dies are free again. Safe from any thread.
class SharedNumbers {
 public:
  // Keys begin with `prefix`.
  static Result<std::unique_ptr<SharedNumbers>> open(std::shared_ptr<store::Store> store,
                                                     std::string prefix, Deadline deadline);

  // The lowest below `limit` that is free; exhausted when none is.
  Result<uint32_t> take(uint32_t limit, Deadline deadline);
  // Whoever took it. notFound when it is free.
  Status giveBack(uint32_t number, Deadline deadline);
  // The store is in reach, as far as we know.
  bool inReach() const { return lease_->status().code() != Code::disconnected; }

 private:
  SharedNumbers(std::shared_ptr<store::Store> store, std::string prefix,
                std::shared_ptr<store::KeyLease> lease)
      : store_(std::move(store)), prefix_(std::move(prefix)), lease_(std::move(lease)) {}
  std::string keyOf(uint32_t number) const;

  const std::shared_ptr<store::Store> store_;
  const std::string prefix_;
  const std::shared_ptr<store::KeyLease> lease_;
};

}  // namespace hmc::pool
