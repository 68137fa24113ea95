#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace hmc {

// What a transport did since it was made. Operations and bytes are those that were accepted or
// copied at once; a stall is a post() that accepted fewer operations than it was offered; a retry
// is an operation that the transport had to start again. What came altered, by its checksum, was
// put or asked for by this side or by its peers.
struct TransportTotals {
  uint64_t operations = 0;
  uint64_t bytes = 0;
  uint64_t retries = 0;
  uint64_t stalls = 0;
  uint64_t altered = 0;
};

// Counts what a transport does. A thread counts in a cell of its own with plain loads and stores: a
// locked instruction would wait until the copy before it has left the core. Safe from any thread;
// what is counted meanwhile may or may not be in totals().
class TransportCounters {
 public:
  void count(uint64_t operations, uint64_t bytes) {
    if (ownCell == 0) [[unlikely]]
      return countInShared(operations, bytes);
    Cell& cell = cells_[ownCell];
    add(cell.operations, operations);
    add(cell.bytes, bytes);
  }
  TransportTotals totals() const;

  // Rare, and not behind a copy.
  std::atomic<uint64_t> retries{0};
  std::atomic<uint64_t> stalls{0};
  std::atomic<uint64_t> altered{0};

 private:
  struct alignas(64) Cell {
    std::atomic<uint64_t> operations{0};
    std::atomic<uint64_t> bytes{0};
  };
  class CellOwner;
  static constexpr uint32_t kCells = 256;

  static void add(std::atomic<uint64_t>& sum, uint64_t more) {
    sum.store(sum.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }
  void countInShared(uint64_t operations, uint64_t bytes);

  // Which cell no other living thread writes, in all of these; 0 when there is none. The model
  // spares every count a function call; it is a few bytes of the static TLS space.
  [[gnu::tls_model("initial-exec")]] static constinit thread_local uint32_t ownCell;
  std::array<Cell, kCells> cells_;  // the first is for all threads that have none of their own
};

}  // namespace hmc
