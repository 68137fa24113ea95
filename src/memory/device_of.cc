#include "memory/device_of.h"

#include <link.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <iterator>
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

bool noAcceleratorInProcess() {
  loadPlugins();
  return vendorsInProcess() == 0 &&
         std::none_of(std::begin(kDeviceKinds), std::end(kDeviceKinds), [](DeviceKind kind) {
           return kind != DeviceKind::cpu && loadedBackend(kind) != nullptr;
         });
}

// Loading an accelerator's library and getting memory from it takes milliseconds, so an answer of
// the last tens of microseconds is still true. Asking the loader costs as much as copying two
// kilobytes.
#if defined(__x86_64__)
constexpr uint64_t kFresh = 100000;
uint64_t ticks() {
  return __builtin_ia32_rdtsc();
}
#elif defined(__aarch64__)
constexpr uint64_t kFresh = 1000;  // the counter may run at 25 MHz
uint64_t ticks() {
  uint64_t now = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(now));
  return now;
}
#else
constexpr uint64_t kFresh = 0;  // ask every time
uint64_t ticks() {
  return 0;
}
#endif

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

// The device that knows the pointer, else the host. `missing` gets why others could not be asked.
Result<Device> askAccelerators(const void* ptr, std::string& missing) {
  if (!ptr) return error(Code::invalidArgument, "a null pointer lies on no device");
  loadPlugins();
  const Kinds vendors = vendorsInProcess();
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
  return Device{};
}

}  // namespace

Result<Device> deviceOf(const void* ptr) {
  std::string missing;
  HMC_ASSIGN(const Device known, askAccelerators(ptr, missing));
  if (!known.isHost() || processorCanRead(ptr)) return known;
  return error(Code::invalidArgument,
               "{} is neither readable host memory nor memory of an accelerator that HMC can use "
               "here; say which device it is on, or look at `hmc info`{}",
               ptr, missing);
}

bool isOnHost(const void* ptr) {
  // Small copies ask this: where there is no accelerator, there is nobody to be asked.
  static thread_local uint64_t aloneAt = 0;
  if (ticks() - aloneAt < kFresh) return ptr != nullptr;
  if (noAcceleratorInProcess()) {
    aloneAt = ticks();
    return ptr != nullptr;
  }
  const auto device = deviceOrHost(ptr);
  return device.ok() && device->isHost();
}

Result<Device> deviceOrHost(const void* ptr) {
  std::string ignored;
  return askAccelerators(ptr, ignored);
}

}  // namespace hmc
