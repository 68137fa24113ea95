#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace hmc {

// What a transport did since it was made. Operations and bytes are those that were accepted or
// copied at once; a stall is a post() that accepted fewer operations than it was offered; a retry
// is an operation that the transport had to start again.
struct TransportTotals {
  uint64_t operations = 0;
  uint64_t bytes = 0;
  uint64_t retries = 0;
  uint64_t stalls = 0;
};

// Counts what a transport does. Every thread has a cell of its own in each of these, so counting
// takes plain loads and stores: a locked instruction would wait until the copy before it has left
// the core. Safe from any thread; what is counted meanwhile may or may not be in totals().
class TransportCounters {
 public:
  TransportCounters();
  ~TransportCounters();
  TransportCounters(const TransportCounters&) = delete;
  TransportCounters& operator=(const TransportCounters&) = delete;

  void count(uint64_t operations, uint64_t bytes) {
    Cell& cell = mine();
    add(cell.operations, operations);
    add(cell.bytes, bytes);
  }
  void countStall() { add(mine().stalls, 1); }
  TransportTotals totals() const;

  // The transport's own business, and rare.
  std::atomic<uint64_t> retries{0};

 private:
  // Written by one thread at a time.
  struct alignas(64) Cell {
    std::atomic<uint64_t> operations{0};
    std::atomic<uint64_t> bytes{0};
    std::atomic<uint64_t> stalls{0};
  };
  class Cells;
  class ThreadCells;
  // The cell that this thread used last, and whose it is.
  struct Recent {
    const Cells* cells;
    Cell* cell;
  };
  static ThreadCells& threadCells();

  static void add(std::atomic<uint64_t>& sum, uint64_t more) {
    sum.store(sum.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }
  Cell& mine() {
    if (recent.cells == cells_.get()) [[likely]]
      return *recent.cell;
    return find();
  }
  Cell& find();

  // The model spares every count a function call; it is a few bytes of the static TLS space.
  [[gnu::tls_model("initial-exec")]] static constinit thread_local Recent recent;
  const std::shared_ptr<Cells> cells_;
};

}  // namespace hmc
