#include "memory/cuda/memory.h"

#include <vector>

#include "base/error.h"

namespace hmc::cuda {

namespace {

Status notOurs(const void* ptr, bool attached) {
  return error(Code::invalidArgument, "{} is not CUDA memory that {}", ptr,
               attached ? "attach() mapped" : "allocate() made");
}

}  // namespace

Memory::~Memory() {
  for (auto& [ptr, block] : blocks_) {
    auto context = devices_[static_cast<size_t>(block.region.device.index)].context();
    Current current(driver_, context.ok() ? *context : nullptr);
    (void)unmap(block);
  }
}

Result<Memory::Known> Memory::ask(const void* ptr) const {
  int type = 0;
  int managed = 0;
  int index = 0;
  int legacy = 0;
  CuPointer base = 0;
  size_t size = 0;
  uint64_t handles = 0;
  int attributes[] = {kAttributeMemoryType, kAttributeIsManaged,  kAttributeDevice,
                      kAttributeIpcCapable, kAttributeRangeStart, kAttributeRangeSize,
                      kAttributeHandleTypes};
  void* values[] = {&type, &managed, &index, &legacy, &base, &size, &handles};
  HMC_CUDA(driver_, cuPointerGetAttributes, std::size(attributes), attributes, values,
           address(ptr));
  // Managed memory is the processor's as well, which moves it about: host memory to us.
  if (type != kMemoryTypeDevice || managed != 0) return Known{};
  return Known{index, pointer(base), size, legacy != 0, handles};
}

CuMemProperties Memory::propertiesOf(const CudaDevice& device) const {
  CuMemProperties properties{};
  properties.type = kAllocationPinned;
  properties.location = {kLocationDevice, device.handle()};
  properties.requestedHandleTypes = kHandleDescriptor;
  if (fabric_.load() && device.has(kFabric)) properties.requestedHandleTypes |= kHandleFabric;
  properties.allocFlags.gpuDirectRDMACapable = device.has(kRdmaWithVirtualMemory) ? 1 : 0;
  return properties;
}

Result<size_t> Memory::granularity() {
  size_t most = 1;
  for (CudaDevice& device : devices_) {
    const CuMemProperties properties = propertiesOf(device);
    size_t one = 0;
    HMC_CUDA(driver_, cuMemGetAllocationGranularity, &one, &properties, kGranularityMinimum);
    most = std::max(most, one);
  }
  return most;
}

Result<Physical> Memory::create(CudaDevice& device, size_t granules, size_t size) {
  CuMemProperties properties = propertiesOf(device);
  CuAllocation handle = 0;
  CuResult made = driver_.cuMemCreate(&handle, granules, &properties, 0);
  if (made == kNotPermitted || made == kNotSupported) {
    // Fabric handles need a service of the machine's that is not there.
    fabric_.store(false);
    properties = propertiesOf(device);
    made = driver_.cuMemCreate(&handle, granules, &properties, 0);
  }
  if (made == kOutOfMemory) {
    size_t free = 0;
    size_t total = 0;
    (void)driver_.cuMemGetInfo_v2(&free, &total);
    return error(Code::exhausted, "cuda:{} has no {} bytes: {} of {} are free", device.index(),
                 size, free, total);
  }
  HMC_TRY(driver_.check(made, "cuMemCreate"));
  return Physical(driver_, handle);
}

Status Memory::map(Block& block, void* at) {
  if (at) {
    HMC_ASSIGN(Mapping place, reservations_.take(at, block.mapped));
    block.place.emplace(std::move(place));
    block.base = static_cast<char*>(at);
  } else {
    CuPointer base = 0;
    HMC_CUDA(driver_, cuMemAddressReserve, &base, block.mapped, 0, 0, 0);
    block.base = pointer(base);
  }
  CuPointer next = address(block.base);
  for (size_t i = 0; i < block.chunks.size(); ++i) {
    const Chunk& chunk = block.chunks[i];
    Status mapped =
        driver_.check(driver_.cuMemMap(next, chunk.size, 0, chunk.physical.get(), 0), "cuMemMap");
    if (!mapped.ok()) {
      (void)unmapChunks(block, i);
      return mapped;
    }
    next += chunk.size;
  }
  const CudaDevice& home = devices_[static_cast<size_t>(block.region.device.index)];
  std::vector<CuMemAccess> access;
  for (const CudaDevice& device : devices_) {
    int reaches = device.index() == home.index() ? 1 : 0;
    if (!reaches) (void)driver_.cuDeviceCanAccessPeer(&reaches, device.handle(), home.handle());
    if (reaches) access.push_back({{kLocationDevice, device.handle()}, kReadWrite});
  }
  Status open = driver_.check(
      driver_.cuMemSetAccess(address(block.base), block.mapped, access.data(), access.size()),
      "cuMemSetAccess");
  if (!open.ok()) (void)unmap(block);
  return open;
}

Status Memory::unmap(Block& block) {
  if (!block.chunks.empty()) return unmapChunks(block, block.chunks.size());
  HMC_CUDA(driver_, cuIpcCloseMemHandle, address(block.base));
  return Status();
}

Status Memory::unmapChunks(const Block& block, size_t count) {
  CuPointer next = address(block.base);
  for (size_t i = 0; i < count; ++i) {
    HMC_CUDA(driver_, cuMemUnmap, next, block.chunks[i].size);
    next += block.chunks[i].size;
  }
  if (!block.place) HMC_CUDA(driver_, cuMemAddressFree, address(block.base), block.mapped);
  return Status();
}

Result<Region> Memory::add(Block block) {
  const Region region = block.region;
  std::lock_guard lock(mutex_);
  blocks_.emplace(region.at(0), std::move(block));
  return region;
}

Result<Region> Memory::allocate(int index, size_t size) {
  if (size == 0) return error(Code::invalidArgument, "allocate 1 byte or more, not 0");
  CudaDevice& device = devices_[static_cast<size_t>(index)];
  HMC_ASSIGN(CuContext context, device.context());
  Current current(driver_, context);
  HMC_TRY(current.status());
  HMC_ASSIGN(const size_t granule, granularity());
  size_t free = 0;
  size_t total = 0;
  HMC_CUDA(driver_, cuMemGetInfo_v2, &free, &total);
  if (size > total) {
    return error(Code::exhausted, "cuda:{} has no {} bytes: it has {}", index, size, total);
  }
  Block block;
  block.mapped = (size + granule - 1) / granule * granule;
  HMC_ASSIGN(Physical physical, create(device, block.mapped, size));
  block.chunks.push_back({std::move(physical), block.mapped});
  block.region = {nullptr, size, {DeviceKind::cuda, index}};
  HMC_TRY(map(block, nullptr));
  block.region.ptr = block.base;
  return add(std::move(block));
}

Memory::Blocks::iterator Memory::around(const void* ptr) {
  auto* byte = static_cast<const char*>(ptr);
  auto next = blocks_.upper_bound(byte);
  if (next == blocks_.begin()) return blocks_.end();
  auto found = std::prev(next);
  const Block& block = found->second;
  return byte < block.base + block.mapped ? found : blocks_.end();
}

Status Memory::check(const void* ptr, bool attached) {
  std::lock_guard lock(mutex_);
  auto found = blocks_.find(static_cast<const char*>(ptr));
  return found != blocks_.end() && found->second.attached == attached ? Status()
                                                                      : notOurs(ptr, attached);
}

Status Memory::remove(const void* ptr, bool attached) {
  std::unique_lock lock(mutex_);
  auto found = blocks_.find(static_cast<const char*>(ptr));
  if (found == blocks_.end() || found->second.attached != attached) return notOurs(ptr, attached);
  auto node = blocks_.extract(found);
  lock.unlock();
  Block& block = node.mapped();
  HMC_ASSIGN(CuContext context, devices_[static_cast<size_t>(block.region.device.index)].context());
  Current current(driver_, context);
  return unmap(block);
}

Result<Region> Memory::locate(const void* ptr) {
  {
    std::lock_guard lock(mutex_);
    auto found = around(ptr);
    if (found != blocks_.end()) {
      const Region& region = found->second.region;
      const auto offset = static_cast<size_t>(static_cast<const char*>(ptr) - region.at(0));
      if (offset < region.size) return region;
      return error(Code::notFound, "{} is past the end of {} bytes on {}", ptr, region.size,
                   region.device.toString());
    }
  }
  HMC_ASSIGN(const Known known, ask(ptr));
  if (known.size == 0) return error(Code::notFound, "{} is not CUDA device memory", ptr);
  return Region{known.base, known.size, {DeviceKind::cuda, known.index}};
}

Region Memory::reachedByKernels(const void* ptr) {
  {
    std::lock_guard lock(mutex_);
    auto found = around(ptr);
    if (found != blocks_.end()) return found->second.region;
  }
  auto known = ask(ptr);
  if (!known.ok() || known->size == 0) return {};
  CuContext owner = nullptr;  // none: memory of the device, for all its contexts
  int attribute = kAttributeContext;
  void* value = &owner;
  const CuResult asked = driver_.cuPointerGetAttributes(1, &attribute, &value, address(ptr));
  auto primary = devices_[static_cast<size_t>(known->index)].context();
  const bool reached = asked == kSuccess && primary.ok() && (!owner || owner == *primary);
  return {known->base, reached ? known->size : 0, {DeviceKind::cuda, known->index}};
}

Result<std::unique_ptr<Reservation>> Memory::reserve(size_t size, void* at) {
  if (size == 0 || size > SIZE_MAX / 2) {
    return error(Code::invalidArgument, "{} bytes of addresses cannot be reserved", size);
  }
  HMC_ASSIGN(const size_t granule, granularity());
  const size_t whole = (size + granule - 1) / granule * granule;
  // Fewer addresses the driver takes from where it likes, whatever it was asked for.
  constexpr size_t kFewest = size_t{32} << 20;
  const size_t reserved = std::max(whole, kFewest);
  CuPointer base = 0;
  HMC_CUDA(driver_, cuMemAddressReserve, &base, reserved, granule, reinterpret_cast<CuPointer>(at),
           0);
  auto range = std::make_shared<ReservedRange>();
  range->addresses = std::shared_ptr<void>(pointer(base), [this, base, reserved](void*) {
    (void)driver_.cuMemAddressFree(base, reserved);
  });
  range->first = pointer(base);
  if (at && range->first != at) return addressesTaken(size, at);
  range->size = whole;
  range->unit = granule;
  return reservations_.add({DeviceKind::cuda, 0}, std::move(range));
}

}  // namespace hmc::cuda
