#include "base/fork_guard.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

namespace hmc {

namespace {

std::atomic<uint64_t>& page() {
  static std::atomic<uint64_t>* const wiped = [] {
    size_t size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void* made = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) return new std::atomic<uint64_t>(0);
    madvise(made, size, MADV_WIPEONFORK);
    return new (made) std::atomic<uint64_t>(0);
  }();
  return *wiped;
}

}  // namespace

const std::atomic<uint64_t>& ForkGuard::numbered() {
  static std::atomic<uint64_t> last{0};  // a child begins with its parent's
  uint64_t none = 0;
  if (page().load(std::memory_order_relaxed) == 0) page().compare_exchange_strong(none, ++last);
  return page();
}

}  // namespace hmc
