#include "transport/counters.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <vector>

namespace hmc {

constinit thread_local TransportCounters::Recent TransportCounters::recent{nullptr, nullptr};

namespace {
// This thread is past the destructor of its ThreadCells.
constinit thread_local bool threadEnds = false;
}  // namespace

// All cells of one TransportCounters. Threads share it, since they may outlive the transport.
class TransportCounters::Cells {
 public:
  Cell* take() {
    std::lock_guard lock(mutex_);
    if (free_.empty()) return &all_.emplace_back();
    Cell* const cell = free_.back();
    free_.pop_back();
    return cell;
  }
  // Its sums stay; the next thread goes on with them.
  void give(Cell* cell) {
    std::lock_guard lock(mutex_);
    free_.push_back(cell);
  }
  TransportTotals totals() const {
    TransportTotals sum;
    std::lock_guard lock(mutex_);
    add(sum, last);
    for (const Cell& cell : all_) add(sum, cell);
    return sum;
  }

  // For threads that are ending. They may meet here and lose counts.
  Cell last;

 private:
  static void add(TransportTotals& sum, const Cell& cell) {
    sum.operations += cell.operations.load(std::memory_order_relaxed);
    sum.bytes += cell.bytes.load(std::memory_order_relaxed);
    sum.stalls += cell.stalls.load(std::memory_order_relaxed);
  }

  mutable std::mutex mutex_;
  std::deque<Cell> all_;     // guarded by mutex_
  std::vector<Cell*> free_;  // guarded by mutex_: of threads that have ended
};

// The cells of one thread. It gives them back when it ends.
class TransportCounters::ThreadCells {
 public:
  ~ThreadCells() {
    recent = {nullptr, nullptr};
    threadEnds = true;
    for (const One& one : all_) one.cells->give(one.cell);
  }
  Cell* of(const std::shared_ptr<Cells>& cells) {
    for (const One& one : all_) {
      if (one.cells == cells) return one.cell;
    }
    // Those that nobody else holds are of transports that are gone.
    std::erase_if(all_, [](const One& one) { return one.cells.use_count() == 1; });
    all_.push_back({cells, cells->take()});
    return all_.back().cell;
  }

 private:
  struct One {
    std::shared_ptr<Cells> cells;  // holds its address, so that no other can be taken for it
    Cell* cell;
  };
  std::vector<One> all_;
};

TransportCounters::ThreadCells& TransportCounters::threadCells() {
  thread_local ThreadCells cells;
  return cells;
}

TransportCounters::TransportCounters() : cells_(std::make_shared<Cells>()) {}
TransportCounters::~TransportCounters() = default;

TransportCounters::Cell& TransportCounters::find() {
  if (threadEnds) return cells_->last;
  recent = {cells_.get(), threadCells().of(cells_)};
  return *recent.cell;
}

TransportTotals TransportCounters::totals() const {
  TransportTotals sum = cells_->totals();
  sum.retries = retries.load(std::memory_order_relaxed);
  return sum;
}

}  // namespace hmc
