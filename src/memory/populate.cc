#include "memory/populate.h"

#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace hmc {

namespace {

constexpr size_t kMost = size_t{1} << 30;
// Linux 5.14; older C libraries do not name them.
constexpr int kPopulateRead = 22;
constexpr int kPopulateWrite = 23;

uint64_t availableMemory() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  while (file >> name) {
    uint64_t kilobytes = 0;
    if (name == "MemAvailable:" && file >> kilobytes) return kilobytes * 1024;
    std::getline(file, name);
  }
  return 0;
}

}  // namespace

bool worthPopulating(size_t size) {
  return size <= kMost && size <= availableMemory() / 4;
}

void populate(const Region& region, Access access) {
  if (!worthPopulating(region.size)) return;
  auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  auto first = reinterpret_cast<uintptr_t>(region.ptr) / page * page;
  auto last = reinterpret_cast<uintptr_t>(region.ptr) + region.size;
  madvise(reinterpret_cast<void*>(first), last - first,  // NOLINT(performance-no-int-to-ptr)
          access == Access::readWrite ? kPopulateWrite : kPopulateRead);
}

}  // namespace hmc
