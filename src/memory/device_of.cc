#include "memory/device_of.h"

#include <link.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "memory/backends.h"

namespace hmc {

namespace {

constexpr std::string_view kLibraries[] = {
#define HMC_ROW(kind, product, type, library) library,
    HMC_DEVICE_KINDS(HMC_ROW)
#undef HMC_ROW
};

using Kinds = uint32_t;  // a bit for each
static_assert(kDeviceKindCount <= 32);

struct Libraries {
  uint64_t known;  // how many had ever been loaded when we looked last
  uint64_t now = 0;
  Kinds vendors = 0;
};

bool isNamed(const char* path, std::string_view prefix) {
  const char* slash = std::strrchr(path, '/');
  const std::string_view file(slash ? slash + 1 : path);
  return !prefix.empty() && file.substr(0, prefix.size()) == prefix;
}

// Called by the loader for each library, with its lock held.
int visit(dl_phdr_info* library, size_t /*size*/, void* data) {
  auto& libraries = *static_cast<Libraries*>(data);
  libraries.now = library->dlpi_adds;
  if (libraries.now == libraries.known) return 1;  // nothing was loaded since: stop here
  for (int i = 0; i < kDeviceKindCount; ++i) {
    if (isNamed(library->dlpi_name, kLibraries[i])) libraries.vendors |= Kinds{1} << i;
  }
  return 0;
}

// The kinds whose vendor's library is in the process. Cheap when no library came since the last
// call.
Kinds vendorsInProcess() {
  static std::atomic<uint64_t> known{0};
  static std::atomic<Kinds> vendors{0};
  Libraries libraries{known.load(std::memory_order_acquire)};
  dl_iterate_phdr(visit, &libraries);
  if (libraries.now != libraries.known) {
    vendors.fetch_or(libraries.vendors);
    known.store(libraries.now, std::memory_order_release);
  }
  return vendors.load();
}

// Asks the kernel to read a signal set there for a change of no known sort: it looks at the memory
// first. Unlike process_vm_readv(2) this is allowed in every container.
bool processorCanRead(const void* ptr) {
  constexpr uintptr_t kSetSize = 8;
  const auto aligned = reinterpret_cast<uintptr_t>(ptr) / kSetSize * kSetSize;
  const int before = errno;
  const long changed = syscall(SYS_rt_sigprocmask, ~0, aligned, nullptr, kSetSize);
  const bool readable = changed == 0 || errno != EFAULT;
  errno = before;
  return readable;
}

}  // namespace

Result<Device> deviceOf(const void* ptr) {
  if (!ptr) return error(Code::invalidArgument, "a null pointer lies on no device");
  loadPlugins();
  const Kinds vendors = vendorsInProcess();
  std::string missing;
  for (DeviceKind kind : kDeviceKinds) {
    if (kind == DeviceKind::cpu) continue;
    Backend* backend = loadedBackend(kind);
    if (!backend && (vendors >> static_cast<int>(kind) & 1) != 0) {
      auto found = findBackend(kind);
      if (found.ok()) backend = *found;
      if (!found.ok()) missing += "; " + found.status().message();
    }
    if (!backend) continue;
    auto region = backend->locate(ptr);
    if (region.ok()) return region->device;
    if (region.status().code() != Code::notFound) missing += "; " + region.status().message();
  }
  if (processorCanRead(ptr)) return Device{};
  return error(Code::invalidArgument,
               "{} is neither readable host memory nor memory of an accelerator that HMC can use "
               "here; say which device it is on, or look at `hmc info`{}",
               ptr, missing);
}

}  // namespace hmc
