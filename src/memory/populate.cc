#include "memory/populate.h"

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/fork_guard.h"
#include "base/thread.h"
#include "memory/available_memory.h"
#include "memory/mapping.h"

namespace hmc {

namespace {

// Linux 5.14; older C libraries do not name them.
constexpr int kPopulateRead = 22;
constexpr int kPopulateWrite = 23;
constexpr int kCollapse = 25;  // Linux 6.1

constexpr size_t kPiece = size_t{32} << 20;

bool advise(uintptr_t first, uintptr_t last, int advice) {
  return madvise(reinterpret_cast<void*>(first), last - first, advice) == 0;  // NOLINT
}

uintptr_t pageSize() {
  return static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
}

// Makes huge pages of a part of shared memory, which takes an eighth of the time on most machines,
// and has peers map it at once. That needs a page in each of them; reading is what takes one and
// changes nothing. False where the next part will have none, either.
bool takeHugePages(const Region& region) {
  const uintptr_t first = (reinterpret_cast<uintptr_t>(region.ptr) + kHugePage - 1) & -kHugePage;
  const uintptr_t last = reinterpret_cast<uintptr_t>(region.at(region.size)) & -kHugePage;
  if (first >= last) return true;
  for (uintptr_t at = first; at < last; at += kHugePage) {
    if (!advise(at, at + pageSize(), kPopulateRead)) return false;
  }
  // EAGAIN: somebody is at these pages, such as a peer that maps them.
  return advise(first, last, kCollapse) || errno == EAGAIN || errno == EBUSY;
}

std::optional<unsigned> numaNode() {
  unsigned node = 0;
  if (syscall(SYS_getcpu, nullptr, &node, nullptr) != 0) return std::nullopt;
  return node;
}

// Threads of ours may run on other NUMA nodes than the one that asks for memory. Unless the program
// has a policy of its own, which they inherit, their pages come from that one's.
void preferNumaNode(std::optional<unsigned> node) {
  constexpr unsigned kBits = 8 * sizeof(unsigned long);
  std::array<unsigned long, 16> mask{};
  int policy = MPOL_PREFERRED;
  if (!node || *node / kBits >= mask.size()) return;
  if (syscall(SYS_get_mempolicy, &policy, nullptr, 0, nullptr, 0) != 0) return;
  if (policy != MPOL_DEFAULT) return;
  mask[*node / kBits] = 1UL << (*node % kBits);
  (void)syscall(SYS_set_mempolicy, MPOL_PREFERRED, mask.data(), kBits * mask.size());
}

}  // namespace

bool worthPopulating(size_t size) {
  return size <= availableMemory() / 3 * 2;
}

void populate(const Region& region, Access access) {
  const uintptr_t first = reinterpret_cast<uintptr_t>(region.ptr) / pageSize() * pageSize();
  (void)advise(first, reinterpret_cast<uintptr_t>(region.at(region.size)),
               access == Access::readWrite ? kPopulateWrite : kPopulateRead);
}

struct Population::Work {
  // Huge pages take longer than small ones where a hypervisor takes back free ones, since it does
  // so with whole ones. The first piece of each kind tells. Safe from any thread.
  class HugePages {
   public:
    bool shallTry(size_t piece) const { return !failed_.load() && (piece == 0 || !slower(piece)); }
    void failed() { failed_.store(true); }
    // Of this thread's processor, since others may be at work.
    static uint64_t now() {
      timespec time{};
      (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
      return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 +
             static_cast<uint64_t>(time.tv_nsec);
    }
    void took(size_t piece, uint64_t time, size_t bytes) {
      if (piece < took_.size()) took_[piece].store(1 + time * kPiece / bytes);
    }

   private:
    // The second piece gets small ones in any case.
    bool slower(size_t piece) const {
      const uint64_t huge = took_[0];
      const uint64_t small = took_[1];
      return piece == 1 || (huge != 0 && small != 0 && small < huge);
    }

    std::atomic<bool> failed_{false};
    std::array<std::atomic<uint64_t>, 2> took_{};  // of the first two pieces; 0 is not known yet
  };

  Work(const Region& where, Access how, From begin)
      : region(where),
        access(how),
        from(begin),
        pieces((where.size + kPiece - 1) / kPiece),
        reserve(availableMemory() / 16) {
    const size_t cores = std::thread::hardware_concurrency();
    const size_t most = std::min(pieces, std::clamp<size_t>(cores / 2, 2, 8));
    for (running = most; threads.size() < most;) {
      auto thread = startThread("hmc-pages", [this] { run(); });
      if (!thread.ok()) break;
      threads.push_back(*std::move(thread));
    }
    std::lock_guard lock(mutex);
    running -= most - threads.size();
  }
  ~Work() {
    stopped.store(true);
    threads.clear();
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  void run() {
    preferNumaNode(callers);
    while (providePiece()) {
    }
    std::lock_guard lock(mutex);
    if (--running == 0) ended.notify_all();
  }

  bool providePiece() {
    const size_t number = next.fetch_add(1);
    if (number >= pieces || stopped.load()) return false;
    const size_t at = kPiece * (from == From::start ? number : pieces - 1 - number);
    const Region piece = region.slice(at, std::min(kPiece, region.size - at));
    if (availableMemory() < reserve + piece.size) return false;
    const uint64_t before = HugePages::now();
    if (huge.shallTry(number) && !takeHugePages(piece)) huge.failed();
    populate(piece, access);
    huge.took(number, HugePages::now() - before, piece.size);
    return true;
  }

  const Region region;
  const Access access;
  const From from;
  const size_t pieces;
  const uint64_t reserve;  // what stays for others
  const std::optional<unsigned> callers = numaNode();
  std::atomic<size_t> next{0};
  std::atomic<bool> stopped{false};
  HugePages huge;
  std::mutex mutex;
  std::condition_variable ended;
  size_t running = 0;  // guarded by mutex
  std::vector<std::jthread> threads;
};

Population::Population(const Region& region, Access access, From from) {
  if (!worthPopulating(region.size)) return;
  if (region.size < kLarge) {
    populate(region, access);
  } else {
    work_ = ownedHere(new Work(region, access, from));
  }
}

bool Population::wait(std::chrono::nanoseconds most) const {
  if (!work_) return true;
  std::unique_lock lock(work_->mutex);
  return work_->ended.wait_for(lock, most, [&] { return work_->running == 0; });
}

void Population::stop() const {
  if (work_) work_->stopped.store(true);
}

}  // namespace hmc
