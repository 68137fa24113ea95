#include "transport/counters.h"

#include <bit>

namespace hmc {

constinit thread_local uint32_t TransportCounters::ownCell = 0;

// Takes a cell for this thread, if one is free, and gives it back when the thread ends. Its sums
// stay; the next thread goes on with them.
class TransportCounters::CellOwner {
 public:
  CellOwner() {
    uint64_t before = taken.load(std::memory_order_relaxed);
    while (~before != 0) {
      const int free = std::countr_one(before);
      if (!taken.compare_exchange_weak(before, before | uint64_t{1} << free)) continue;
      ownCell = static_cast<uint32_t>(free);
      return;
    }
  }
  ~CellOwner() {
    if (ownCell != 0) taken.fetch_and(~(uint64_t{1} << ownCell));
    ownCell = 0;
  }

 private:
  static inline std::atomic<uint64_t> taken{1};  // a bit for each cell
};

void TransportCounters::countInShared(uint64_t operations, uint64_t bytes) {
  thread_local const CellOwner owner;
  if (ownCell != 0) return count(operations, bytes);
  cells_[0].operations.fetch_add(operations, std::memory_order_relaxed);
  cells_[0].bytes.fetch_add(bytes, std::memory_order_relaxed);
}

TransportTotals TransportCounters::totals() const {
  TransportTotals sum{0, 0, retries.load(std::memory_order_relaxed),
                      stalls.load(std::memory_order_relaxed)};
  for (const Cell& cell : cells_) {
    sum.operations += cell.operations.load(std::memory_order_relaxed);
    sum.bytes += cell.bytes.load(std::memory_order_relaxed);
  }
  return sum;
}

}  // namespace hmc
