#include "base/fork_guard.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

namespace hmc {

std::atomic<uint32_t>& ForkGuard::word() {
  static std::atomic<uint32_t>* word = [] {
    size_t size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void* page = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return new std::atomic<uint32_t>(0);
    madvise(page, size, MADV_WIPEONFORK);
    return new (page) std::atomic<uint32_t>(0);
  }();
  return *word;
}

// A child has another number than its parent.
uint32_t ForkGuard::mark() {
  const auto process = static_cast<uint32_t>(getpid());
  word().store(process, std::memory_order_relaxed);
  return process;
}

Status ForkGuard::refusal() {
  return Status(Code::invalidArgument,
                "this process was forked from one that uses HMC: create a Node of its own");
}

}  // namespace hmc
