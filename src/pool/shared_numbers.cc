#include "pool/shared_numbers.h"

#include "base/error.h"

namespace hmc::pool {

namespace {

constexpr std::chrono::milliseconds kNumberLease{5000};

}  // namespace

Result<std::unique_ptr<SharedNumbers>> SharedNumbers::open(std::shared_ptr<store::Store> store,
                                                           std::string prefix, Deadline deadline) {
  HMC_ASSIGN(auto lease, store->lease(kNumberLease, deadline));
  return std::unique_ptr<SharedNumbers>(
      new SharedNumbers(std::move(store), std::move(prefix), std::move(lease)));
}

// With leading zeros: the store sorts by key.
std::string SharedNumbers::keyOf(uint32_t number) const {
  return fmt::format("{}{:010}", prefix_, number);
}

Result<uint32_t> SharedNumbers::take(uint32_t limit, Deadline deadline) {
  while (true) {
    HMC_ASSIGN(const auto taken, store_->list(prefix_, deadline));
    uint32_t lowest = 0;
    for (const store::Entry& entry : taken) {
      if (entry.key != keyOf(lowest)) break;
      ++lowest;
    }
    if (lowest >= limit) {
      return error(Code::exhausted, "all {} numbers are taken: give one back, or raise the limit",
                   limit);
    }
    HMC_ASSIGN(const auto swap,
               store_->compareAndSet(keyOf(lowest), std::nullopt, "", deadline, lease_));
    if (swap.done) return lowest;
  }
}

Status SharedNumbers::giveBack(uint32_t number, Deadline deadline) {
  HMC_ASSIGN(const auto swap, store_->compareAndSet(keyOf(number), "", std::nullopt, deadline));
  if (swap.done) return Status();
  return error(Code::notFound, "the number {} is not taken", number);
}

}  // namespace hmc::pool
