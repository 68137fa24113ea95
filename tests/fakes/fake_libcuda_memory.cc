// The fake driver's virtual memory: physical memory, addresses, and what is mapped where.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "fakes/fake_libcuda_state.h"

namespace hmc::cuda {

namespace fake {

namespace {

// The name tells an importer which device the memory is on.
constexpr const char* kName = "hmc-fake-cuda-%d";

CuResult mapBytes(PhysicalBytes& memory) {
  void* bytes =
      mmap(nullptr, memory.size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, memory.fd, 0);
  if (bytes == MAP_FAILED) return kOutOfMemory;
  memory.bytes = static_cast<char*>(bytes);
  return kSuccess;
}

// The device of a descriptor that makePhysical() made, in this process or another one.
GpuState* gpuOfDescriptor(int fd) {
  char target[64] = "";
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  if (readlink(link.c_str(), target, sizeof(target) - 1) < 0) return nullptr;
  int physical = -1;
  const std::string format = std::string("/memfd:") + kName;
  if (std::sscanf(target, format.c_str(), &physical) != 1) return nullptr;
  return driver().gpuOfPhysical(physical);
}

CuAllocation addHandle(const PhysicalPtr& memory) {
  DriverState& state = driver();
  if (memory->handle == 0) memory->handle = ++state.lastHandle;
  ++memory->references;
  state.handles[memory->handle] = memory;
  return memory->handle;
}

CuResult checkProperties(const CuMemProperties& properties, GpuState*& gpu) {
  if (properties.type != kAllocationPinned || properties.location.type != kLocationDevice) {
    return kInvalidValue;
  }
  gpu = driver().gpuAt(properties.location.id);
  if (!gpu) return kInvalidDevice;
  return (properties.requestedHandleTypes & ~kHandleDescriptor) == 0 ? kSuccess : kNotSupported;
}

// Are there whole mappings in all of it, one after the other?
bool holdsWholeMappings(CuPointer at, size_t size) {
  size_t seen = 0;
  while (seen < size) {
    auto found = driver().mappings.find(at + seen);
    if (found == driver().mappings.end()) return false;
    seen += found->second.size;
  }
  return size > 0 && seen == size;
}

bool holdsAMapping(CuPointer at, size_t size) {
  if (mappingAround(driver(), at) != driver().mappings.end()) return true;
  auto next = driver().mappings.lower_bound(at);
  return next != driver().mappings.end() && next->first < at + size;
}

}  // namespace

PhysicalBytes::~PhysicalBytes() {
  if (bytes) munmap(bytes, size);
  if (fd >= 0) close(fd);
  if (counted) gpu->used -= size;
}

CuResult makePhysical(GpuState& gpu, size_t size, PhysicalPtr& made) {
  if (size > driver().memory || gpu.used + size > driver().memory) return kOutOfMemory;
  auto memory = std::make_shared<PhysicalBytes>();
  char name[64];
  std::snprintf(name, sizeof(name), kName, gpu.physical);
  memory->fd = memfd_create(name, MFD_CLOEXEC);
  memory->size = size;
  memory->gpu = &gpu;
  if (memory->fd < 0 || ftruncate(memory->fd, static_cast<off_t>(size)) != 0) return kOutOfMemory;
  HMC_FAKE_CHECK(mapBytes(*memory));
  gpu.used += size;
  memory->counted = true;
  made = std::move(memory);
  return kSuccess;
}

CuResult importPhysical(int fd, PhysicalPtr& made) {
  auto memory = std::make_shared<PhysicalBytes>();
  memory->gpu = gpuOfDescriptor(fd);
  struct stat facts {};
  if (!memory->gpu || fstat(fd, &facts) != 0) return kInvalidValue;
  memory->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  memory->size = static_cast<size_t>(facts.st_size);
  memory->handleTypes = kHandleDescriptor;
  if (memory->fd < 0) return kOutOfMemory;
  HMC_FAKE_CHECK(mapBytes(*memory));
  made = std::move(memory);
  return kSuccess;
}

CuPointer reserveAddresses(size_t granules, int protection) {
  void* found = mmap(nullptr, granules + kGranule, protection,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) return 0;
  auto* first = static_cast<char*>(found);
  const size_t before = (kGranule - reinterpret_cast<uintptr_t>(first) % kGranule) % kGranule;
  if (before > 0) munmap(first, before);
  munmap(first + before + granules, kGranule - before);
  return reinterpret_cast<CuPointer>(first + before);
}

namespace {
CuPointer reserveThere(size_t granules, CuPointer there) {
  void* at = reinterpret_cast<void*>(there);  // NOLINT(performance-no-int-to-ptr)
  void* found = mmap(at, granules, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found != at && found != MAP_FAILED) munmap(found, granules);
  return found == at ? there : 0;
}
}  // namespace

std::vector<DriverState::Span> DriverState::spansOf(CuPointer at, size_t size, int gpu) const {
  std::vector<Span> spans;
  while (size > 0) {
    auto found = around(mappings, at, [](const MappedMemory& one) { return one.size; });
    if (found == mappings.end()) return {};
    const MappedMemory& mapped = found->second;
    // A copy between devices that cannot reach each other goes through both.
    if (mapped.access.count(gpu) + mapped.access.count(mapped.memory->gpu->index) == 0) return {};
    const size_t offset = at - found->first;
    const size_t some = std::min(size, mapped.size - offset);
    spans.push_back({mapped.memory->bytes + offset, some, mapped.memory});
    at += some;
    size -= some;
  }
  return spans;
}

}  // namespace fake

using namespace fake;  // NOLINT: what follows is the driver's interface

FAKE CuResult cuMemGetInfo_v2(size_t* free, size_t* total) {
  CuContext context = nullptr;
  HMC_FAKE_CHECK(enter(__func__, context));
  std::lock_guard lock(driver().mutex);
  *total = driver().memory;
  *free = driver().memory - context->gpu.used;
  return kSuccess;
}

FAKE CuResult cuMemGetAllocationGranularity(size_t* granularity, const CuMemProperties* properties,
                                            int /*option*/) {
  HMC_FAKE_CHECK(enter(__func__));
  std::lock_guard lock(driver().mutex);
  GpuState* gpu = nullptr;
  HMC_FAKE_CHECK(checkProperties(*properties, gpu));
  *granularity = kGranule;
  return kSuccess;
}

FAKE CuResult cuMemCreate(CuAllocation* handle, size_t size, const CuMemProperties* properties,
                          unsigned long long flags) {
  HMC_FAKE_CHECK(enter(__func__));
  std::lock_guard lock(driver().mutex);
  GpuState* gpu = nullptr;
  HMC_FAKE_CHECK(checkProperties(*properties, gpu));
  if (size == 0 || !isWhole(size) || flags != 0) return kInvalidValue;
  if (gpu->context && gpu->context->failure.load() != kSuccess) return gpu->context->failure.load();
  PhysicalPtr made;
  HMC_FAKE_CHECK(makePhysical(*gpu, size, made));
  made->handleTypes = properties->requestedHandleTypes;
  *handle = addHandle(made);
  return kSuccess;
}

FAKE CuResult cuMemRelease(CuAllocation handle) {
  HMC_FAKE_CHECK(enter(__func__));
  std::lock_guard lock(driver().mutex);
  auto found = driver().handles.find(handle);
  if (found == driver().handles.end()) return kInvalidValue;
  if (--found->second->references == 0) driver().handles.erase(found);
  return kSuccess;
}

FAKE CuResult cuMemRetainAllocationHandle(CuAllocation* handle, void* at) {
  HMC_FAKE_CHECK(enter(__func__));
  std::lock_guard lock(driver().mutex);
  const auto address = reinterpret_cast<CuPointer>(at);
  auto found = mappingAround(driver(), address);
  auto range = rangeAround(driver(), address);
  if (found == driver().mappings.end() || range->second.kind != AddressRange::Kind::reserved) {
    return kInvalidValue;
  }
  *handle = addHandle(found->second.memory);
  return kSuccess;
}

FAKE CuResult cuMemAddressReserve(CuPointer* base, size_t size, size_t alignment, CuPointer hint,
                                  unsigned long long flags) {
  HMC_FAKE_CHECK(enter(__func__));
  const bool aligned = (alignment & (alignment - 1)) == 0 && alignment <= kGranule;
  if (size == 0 || !isWhole(size) || !aligned || flags != 0) return kInvalidValue;
  std::lock_guard lock(driver().mutex);
  // A hint is a wish: where something lies there, the addresses are others. So they are where they
  // are few (seen with driver 580 on an H200).
  constexpr size_t kFewest = size_t{32} << 20;
  CuPointer found = hint != 0 && size >= kFewest ? reserveThere(size, hint) : 0;
  if (found == 0) found = reserveAddresses(size, PROT_NONE);
  if (found == 0) return kOutOfMemory;
  AddressRange& range = driver().ranges[found];
  range.size = size;
  range.granules = size;
  *base = found;
  return kSuccess;
}

FAKE CuResult cuMemAddressFree(CuPointer base, size_t size) {
  HMC_FAKE_CHECK(enter(__func__));
  std::lock_guard lock(driver().mutex);
  auto found = driver().ranges.find(base);
  if (found == driver().ranges.end() || found->second.kind != AddressRange::Kind::reserved ||
      found->second.size != size || holdsAMapping(base, size)) {
    return kInvalidValue;
  }
  driver().ranges.erase(found);
  munmap(reinterpret_cast<void*>(base), size);  // NOLINT
  return kSuccess;
}

FAKE CuResult cuMemMap(CuPointer at, size_t size, size_t offset, CuAllocation handle,
                       unsigned long long flags) {
  HMC_FAKE_CHECK(enter(__func__));
  std::lock_guard lock(driver().mutex);
  auto memory = driver().handles.find(handle);
  auto range = rangeAround(driver(), at);
  if (memory == driver().handles.end() || range == driver().ranges.end() || size == 0 ||
      !isWhole(at) || !isWhole(size) || offset != 0 || flags != 0) {
    return kInvalidValue;
  }
  const AddressRange& where = range->second;
  const bool fits = size <= where.size - (at - range->first) && size <= memory->second->size;
  if (where.kind != AddressRange::Kind::reserved || !fits || holdsAMapping(at, size)) {
    return kInvalidValue;
  }
  // As the hardware of today: all of a handle or nothing.
  if (size != memory->second->size) return kNotSupported;
  driver().mappings[at] = {memory->second, size, {}};
  return kSuccess;
}

FAKE CuResult cuMemUnmap(CuPointer at, size_t size) {
  HMC_FAKE_CHECK(enter(__func__));
  std::lock_guard lock(driver().mutex);
  auto range = rangeAround(driver(), at);
  if (!holdsWholeMappings(at, size) || range->second.kind != AddressRange::Kind::reserved) {
    return kInvalidValue;
  }
  driver().mappings.erase(driver().mappings.find(at), driver().mappings.lower_bound(at + size));
  return kSuccess;
}

FAKE CuResult cuMemSetAccess(CuPointer at, size_t size, const CuMemAccess* access, size_t count) {
  HMC_FAKE_CHECK(enter(__func__));
  std::lock_guard lock(driver().mutex);
  if (!holdsWholeMappings(at, size) || count == 0) return kInvalidValue;
  for (size_t i = 0; i < count; ++i) {
    if (access[i].location.type != kLocationDevice) return kInvalidValue;
    if (!driver().gpuAt(access[i].location.id)) return kInvalidDevice;
  }
  const auto end = driver().mappings.lower_bound(at + size);
  for (auto one = driver().mappings.find(at); one != end; ++one) {
    for (size_t i = 0; i < count; ++i) {
      const int index = access[i].location.id;
      one->second.access.erase(index);
      if (access[i].flags == kReadWrite) one->second.access.insert(index);
    }
  }
  return kSuccess;
}

FAKE CuResult cuMemExportToShareableHandle(void* shareable, CuAllocation handle, int type,
                                           unsigned long long flags) {
  HMC_FAKE_CHECK(enter(__func__));
  std::lock_guard lock(driver().mutex);
  auto found = driver().handles.find(handle);
  if (found == driver().handles.end() || flags != 0 || (found->second->handleTypes & type) == 0) {
    return kInvalidValue;
  }
  const int fd = fcntl(found->second->fd, F_DUPFD_CLOEXEC, 0);
  if (fd < 0) return kOutOfMemory;
  *static_cast<int*>(shareable) = fd;
  return kSuccess;
}

FAKE CuResult cuMemImportFromShareableHandle(CuAllocation* handle, void* shareable, int type) {
  HMC_FAKE_CHECK(enter(__func__));
  if (type != kHandleDescriptor) return kNotSupported;
  std::lock_guard lock(driver().mutex);
  PhysicalPtr made;
  HMC_FAKE_CHECK(importPhysical(static_cast<int>(reinterpret_cast<intptr_t>(shareable)), made));
  *handle = addHandle(made);
  return kSuccess;
}

// Not a dma-buf, but a descriptor of the bytes, whose position is where the range begins.
FAKE CuResult cuMemGetHandleForAddressRange(void* handle, CuPointer at, size_t size, int type,
                                            unsigned long long /*flags*/) {
  HMC_FAKE_CHECK(enter(__func__));
  if (type != kRangeDmaBuf || at % kPage != 0 || size % kPage != 0) return kInvalidValue;
  std::lock_guard lock(driver().mutex);
  auto found = mappingAround(driver(), at);
  if (found == driver().mappings.end()) return kInvalidValue;
  if (size > found->second.size - (at - found->first)) return kInvalidValue;
  const std::string memory = "/proc/self/fd/" + std::to_string(found->second.memory->fd);
  const int fd = open(memory.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return kOutOfMemory;
  lseek(fd, static_cast<off_t>(at - found->first), SEEK_SET);
  *static_cast<int*>(handle) = fd;
  return kSuccess;
}

}  // namespace hmc::cuda
