#include "base/fork_guard.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

namespace hmc {

const std::atomic<bool>& forkSentinel() {
  static const std::atomic<bool>* sentinel = [] {
    size_t size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void* page = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return new std::atomic<bool>(true);
    madvise(page, size, MADV_WIPEONFORK);
    return new (page) std::atomic<bool>(true);
  }();
  return *sentinel;
}

}  // namespace hmc
