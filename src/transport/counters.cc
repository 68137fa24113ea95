#include "transport/counters.h"

#include <bitset>
#include <mutex>

namespace hmc {

constinit thread_local uint32_t TransportCounters::ownCell = 0;

// Takes a cell for this thread, if one is free, and gives it back when the thread ends. Its sums
// stay; the next thread goes on with them.
class TransportCounters::CellOwner {
 public:
  CellOwner() {
    std::lock_guard lock(mutex);
    for (uint32_t i = 1; i < kCells && ownCell == 0; ++i) {
      if (!taken[i]) ownCell = i;
    }
    taken[ownCell] = true;
  }
  ~CellOwner() {
    std::lock_guard lock(mutex);
    taken[ownCell] = false;
    ownCell = 0;
  }

 private:
  static inline std::mutex mutex;
  static inline std::bitset<kCells> taken;  // guarded by mutex; the first does not count
};

void TransportCounters::countInShared(uint64_t operations, uint64_t bytes) {
  thread_local const CellOwner owner;
  if (ownCell != 0) return count(operations, bytes);
  cells_[0].operations.fetch_add(operations, std::memory_order_relaxed);
  cells_[0].bytes.fetch_add(bytes, std::memory_order_relaxed);
}

TransportTotals TransportCounters::totals() const {
  TransportTotals sum{0, 0, retries.load(std::memory_order_relaxed),
                      stalls.load(std::memory_order_relaxed),
                      altered.load(std::memory_order_relaxed)};
  for (const Cell& cell : cells_) {
    sum.operations += cell.operations.load(std::memory_order_relaxed);
    sum.bytes += cell.bytes.load(std::memory_order_relaxed);
  }
  return sum;
}

}  // namespace hmc
