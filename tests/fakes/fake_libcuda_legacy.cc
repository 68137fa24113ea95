// The fake driver's memory of other users of CUDA: cudaMalloc() and its IPC handles, managed
// memory, pinned host memory, and what the driver says of a pointer.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "fakes/fake_libcuda_state.h"

namespace hmc::cuda {

namespace fake {

namespace {

using Kind = AddressRange::Kind;

// What is in a CuIpcMemHandle. The process that made the memory keeps it open.
struct IpcHandle {
  uint32_t magic = 0xfa4ecdda;
  int pid = 0;
  int fd = -1;
};
static_assert(sizeof(IpcHandle) <= sizeof(CuIpcMemHandle));

// Addresses with memory of a device behind them, which every device reaches.
CuResult addRange(const PhysicalPtr& memory, AddressRange range, CuPointer& base) {
  range.granules = memory->size;
  range.gpu = memory->gpu;
  base = reserveAddresses(range.granules, PROT_NONE);
  if (base == 0) return kOutOfMemory;
  MappedMemory& mapped = driver().mappings[base];
  mapped.memory = memory;
  mapped.size = range.granules;
  for (const GpuState& gpu : driver().gpus) mapped.access.insert(gpu.index);
  driver().ranges[base] = std::move(range);
  return kSuccess;
}

void removeRange(std::map<CuPointer, AddressRange>::iterator range) {
  munmap(reinterpret_cast<void*>(range->first), range->second.granules);  // NOLINT
  driver().mappings.erase(range->first);
  driver().ranges.erase(range);
}

// The memory of another process.
CuResult openDescriptor(const IpcHandle& handle, PhysicalPtr& memory) {
  const std::string path =
      "/proc/" + std::to_string(handle.pid) + "/fd/" + std::to_string(handle.fd);
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return kMapFailed;
  const CuResult imported = importPhysical(fd, memory);
  close(fd);
  return imported;
}

struct PointerFacts {
  CuPointer at = 0;
  const AddressRange* range = nullptr;  // null: no device memory
  CuPointer rangeBase = 0;
  const MappedMemory* mapped = nullptr;
  CuPointer mappedBase = 0;
};

PointerFacts factsOf(CuPointer at) {
  PointerFacts facts;
  facts.at = at;
  auto range = rangeAround(driver(), at);
  if (range == driver().ranges.end()) return facts;
  auto mapped = mappingAround(driver(), at);
  const bool isManaged = range->second.kind == Kind::managed;
  if (!isManaged && mapped == driver().mappings.end()) return facts;
  if (at - range->first >= range->second.size) return facts;
  facts.range = &range->second;
  facts.rangeBase = range->first;
  if (isManaged) return facts;
  facts.mapped = &mapped->second;
  facts.mappedBase = mapped->first;
  return facts;
}

template <class Value>
CuResult put(void* into, Value value) {
  std::memcpy(into, &value, sizeof(value));
  return kSuccess;
}

// Zero in every attribute of what is no device memory.
CuResult answer(const PointerFacts& facts, int attribute, void* into) {
  const AddressRange* range = facts.range;
  const bool isManaged = range && range->kind == Kind::managed;
  const bool isVirtual = range && range->kind == Kind::reserved;
  const GpuState* gpu = facts.mapped ? facts.mapped->memory->gpu : range ? range->gpu : nullptr;
  switch (attribute) {
    case kAttributeContext:
      return put<CuContext>(into, range ? range->context : nullptr);
    case kAttributeMemoryType:
      return put<int>(into, range ? kMemoryTypeDevice : 0);
    case kAttributeIsManaged:
      return put<int>(into, isManaged ? 1 : 0);
    case kAttributeDevice:
      return put<int>(into, gpu ? gpu->index : 0);
    case kAttributeIpcCapable:
      return put<int>(into, range && range->kind == Kind::allocated ? 1 : 0);
    case kAttributeRangeStart:
      return put<CuPointer>(into, facts.rangeBase);
    case kAttributeRangeSize:
      return put<size_t>(into, range ? range->size : 0);
    case kAttributeHandleTypes:
      return put<uint64_t>(
          into, isVirtual ? static_cast<uint64_t>(facts.mapped->memory->handleTypes) : 0);
    case kAttributeMappingBase:
      return put<CuPointer>(into, facts.mappedBase);
    case kAttributeMappingSize:
      return put<size_t>(into, facts.mapped ? facts.mapped->size : 0);
    default:
      return kInvalidValue;
  }
}

bool overlapsPinned(CuPointer at, size_t size) {
  auto next = driver().pinned.lower_bound(at);
  if (next != driver().pinned.end() && next->first < at + size) return true;
  return around(driver().pinned, at, [](size_t one) { return one; }) != driver().pinned.end();
}

}  // namespace

bool DriverState::isPinned(CuPointer at, size_t size) const {
  auto found = around(pinned, at, [](size_t one) { return one; });
  return found != pinned.end() && size <= found->second - (at - found->first);
}

}  // namespace fake

using namespace fake;  // NOLINT: what follows is the driver's interface

FAKE CuResult cuMemAlloc_v2(CuPointer* base, size_t size) {
  CuContext context = nullptr;
  HMC_FAKE_CHECK(enter(__func__, context));
  if (size == 0) return kInvalidValue;
  std::lock_guard lock(driver().mutex);
  if (size > driver().memory) return kOutOfMemory;
  PhysicalPtr memory;
  HMC_FAKE_CHECK(makePhysical(context->gpu, inGranules(size), memory));
  AddressRange range{Kind::allocated, size};
  range.context = context;
  return addRange(memory, std::move(range), *base);
}

FAKE CuResult cuMemAllocManaged(CuPointer* base, size_t size, unsigned /*flags*/) {
  CuContext context = nullptr;
  HMC_FAKE_CHECK(enter(__func__, context));
  if (size == 0) return kInvalidValue;
  std::lock_guard lock(driver().mutex);
  *base = reserveAddresses(inGranules(size), PROT_READ | PROT_WRITE);
  if (*base == 0) return kOutOfMemory;
  driver().ranges[*base] = {Kind::managed, size, inGranules(size), &context->gpu, nullptr, {}, 0};
  driver().pinned[*base] = inGranules(size);
  return kSuccess;
}

FAKE CuResult cuMemFree_v2(CuPointer base) {
  CuContext context = nullptr;
  HMC_FAKE_CHECK(enter(__func__, context));
  HMC_FAKE_CHECK(synchronize(context));
  std::lock_guard lock(driver().mutex);
  auto found = driver().ranges.find(base);
  if (found == driver().ranges.end()) return kInvalidValue;
  const Kind kind = found->second.kind;
  if (kind != Kind::allocated && kind != Kind::managed) return kInvalidValue;
  if (kind == Kind::managed) driver().pinned.erase(base);
  removeRange(found);
  return kSuccess;
}

FAKE CuResult cuIpcGetMemHandle(CuIpcMemHandle* handle, CuPointer at) {
  CuContext context = nullptr;
  HMC_FAKE_CHECK(enter(__func__, context));
  std::lock_guard lock(driver().mutex);
  auto found = rangeAround(driver(), at);
  if (found == driver().ranges.end() || found->second.kind != Kind::allocated) return kInvalidValue;
  IpcHandle made;
  made.pid = getpid();
  made.fd = driver().mappings[found->first].memory->fd;
  *handle = {};
  std::memcpy(handle->reserved, &made, sizeof(made));
  return kSuccess;
}

FAKE CuResult cuIpcOpenMemHandle_v2(CuPointer* base, CuIpcMemHandle handle, unsigned flags) {
  CuContext context = nullptr;
  HMC_FAKE_CHECK(enter(__func__, context));
  IpcHandle made;
  std::memcpy(&made, handle.reserved, sizeof(made));
  if (flags != kIpcLazyPeerAccess || made.magic != IpcHandle().magic) return kInvalidValue;
  if (made.pid == getpid()) return kInvalidContext;
  const std::string bytes(handle.reserved, sizeof(handle.reserved));
  std::lock_guard lock(driver().mutex);
  for (auto& [at, range] : driver().ranges) {
    if (range.kind != Kind::opened || range.handle != bytes) continue;
    ++range.opens;
    *base = at;
    return kSuccess;
  }
  PhysicalPtr memory;
  HMC_FAKE_CHECK(openDescriptor(made, memory));
  return addRange(memory, {Kind::opened, memory->size, 0, nullptr, context, bytes, 1}, *base);
}

FAKE CuResult cuIpcCloseMemHandle(CuPointer base) {
  CuContext context = nullptr;
  HMC_FAKE_CHECK(enter(__func__, context));
  std::lock_guard lock(driver().mutex);
  auto found = driver().ranges.find(base);
  if (found == driver().ranges.end() || found->second.kind != Kind::opened) return kInvalidValue;
  if (--found->second.opens == 0) removeRange(found);
  return kSuccess;
}

FAKE CuResult cuPointerGetAttributes(unsigned count, int* attributes, void** values, CuPointer at) {
  HMC_FAKE_CHECK(enter(__func__));
  std::lock_guard lock(driver().mutex);
  const PointerFacts facts = factsOf(at);
  for (unsigned i = 0; i < count; ++i) {
    HMC_FAKE_CHECK(answer(facts, attributes[i], values[i]));
  }
  return kSuccess;
}

FAKE CuResult cuMemHostAlloc(void** host, size_t size, unsigned /*flags*/) {
  CuContext context = nullptr;
  HMC_FAKE_CHECK(enter(__func__, context));
  if (size == 0) return kInvalidValue;
  void* made = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return kOutOfMemory;
  std::lock_guard lock(driver().mutex);
  driver().pinned[reinterpret_cast<CuPointer>(made)] = size;
  *host = made;
  return kSuccess;
}

FAKE CuResult cuMemHostRegister_v2(void* host, size_t size, unsigned /*flags*/) {
  CuContext context = nullptr;
  HMC_FAKE_CHECK(enter(__func__, context));
  const auto at = reinterpret_cast<CuPointer>(host);
  if (at == 0 || size == 0 || size > ~at) return kInvalidValue;
  std::lock_guard lock(driver().mutex);
  if (rangeAround(driver(), at) != driver().ranges.end()) return kInvalidValue;
  if (overlapsPinned(at, size)) return kAlreadyRegistered;
  driver().pinned[at] = size;
  driver().registered.insert(at);
  return kSuccess;
}

FAKE CuResult cuMemHostUnregister(void* host) {
  CuContext context = nullptr;
  HMC_FAKE_CHECK(enter(__func__, context));
  std::lock_guard lock(driver().mutex);
  const auto at = reinterpret_cast<CuPointer>(host);
  if (driver().registered.erase(at) == 0) return kNotRegistered;
  driver().pinned.erase(at);
  return kSuccess;
}

}  // namespace hmc::cuda
