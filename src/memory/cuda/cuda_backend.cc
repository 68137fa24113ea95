#include "memory/cuda/cuda_backend.h"

#include <algorithm>

#include "base/error.h"
#include "memory/copy.h"

namespace hmc::cuda {

namespace {

// Host memory that the driver has registered.
class CudaPin final : public PinnedMemory {
 public:
  CudaPin(CudaBackend& owner, CuContext context, void* ptr)
      : owner_(owner), context_(context), ptr_(ptr) {}
  ~CudaPin() override {
    owner_.forget(ptr_);
    Current current(owner_.driver(), context_);
    (void)owner_.driver().cuMemHostUnregister(ptr_);
  }

 private:
  CudaBackend& owner_;
  const CuContext context_;
  void* const ptr_;
};

Result<Backend::DeviceFacts> factsOf(const Driver& driver, CuDevice handle) {
  char name[256] = "";
  HMC_CUDA(driver, cuDeviceGetName, name, sizeof(name), handle);
  CuUuid uuid{};
  HMC_CUDA(driver, cuDeviceGetUuid_v2, &uuid, handle);
  Backend::DeviceFacts facts{{}, name};
  std::memcpy(facts.uuid.bytes.data(), uuid.bytes, sizeof(uuid.bytes));
  return facts;
}

}  // namespace

Result<std::unique_ptr<CudaBackend>> CudaBackend::create(const char* library) {
  HMC_ASSIGN(Driver driver, Driver::load(library));
  Facts facts{DeviceKind::cuda,
              fmt::format("CUDA {}.{}", driver.version / 1000, driver.version % 1000 / 10),
              {}};
  int count = 0;
  HMC_CUDA(driver, cuDeviceGetCount, &count);
  std::vector<CuDevice> handles;
  for (int index = 0; index < count; ++index) {
    CuDevice handle = 0;
    HMC_CUDA(driver, cuDeviceGet, &handle, index);
    HMC_ASSIGN(DeviceFacts device, factsOf(driver, handle));
    facts.devices.push_back(std::move(device));
    handles.push_back(handle);
  }
  return std::unique_ptr<CudaBackend>(
      new CudaBackend(std::move(facts), std::move(driver), handles));
}

CudaBackend::CudaBackend(Facts facts, Driver driver, const std::vector<CuDevice>& handles)
    : Backend(std::move(facts)),
      driver_(std::move(driver)),
      words_(driver_),
      memory_(*this, driver_, devices_) {
  for (size_t i = 0; i < handles.size(); ++i) {
    devices_.emplace_back(driver_, static_cast<int>(i), handles[i]);
    kernels_.emplace_back(driver_, words_, devices_.back());
  }
}

CudaDevice& CudaBackend::anyDevice() {
  for (CudaDevice& device : devices_) {
    if (device.isReady()) return device;
  }
  return devices_.front();
}

Result<Region> CudaBackend::allocate(int index, size_t size) {
  HMC_TRY(checkIndex(index));
  HMC_ASSIGN(const Region region, memory_.allocate(index, size));
  CudaDevice& device = devices_[static_cast<size_t>(index)];
  auto zeroed = [&]() -> Status {
    HMC_ASSIGN(auto on, device.streamOf(device.zeroing()));
    {
      Current current(driver_, on.context);
      HMC_CUDA(driver_, cuMemsetD8Async, address(region.ptr), 0, size, on.stream);
    }
    return finish(device.zeroing());
  };
  Status status = zeroed();
  if (status.ok()) return region;
  // Zeroes on their way to memory that is gone would break the context: rather lose the memory.
  if (finish(device.zeroing()).ok() || device.isBroken()) {
    (void)memory_.remove(region.ptr, /*attached=*/false);
  }
  return status;
}

Status CudaBackend::finish(const DeviceQueue& queue) {
  HMC_ASSIGN(const QueueEnd end, endOf(queue));
  return waitFor(*end.event, kCopyTimeout);
}

Result<CudaBackend::QueueEnd> CudaBackend::endOf(const DeviceQueue& queue) {
  HMC_ASSIGN(auto event, this->event(queue.device.index));
  HMC_TRY(event->record(queue));
  return QueueEnd{queue.device.index, std::move(event)};
}

Status CudaBackend::drain() {
  std::deque<QueueEnd> ends;
  {
    std::lock_guard lock(mutex_);
    ends = usersEnds_;
  }
  // On a device that broke nothing runs any more, so there is nothing to wait for.
  for (CudaDevice& device : devices_) {
    if (!device.isReady() || device.isBroken()) continue;
    for (uint8_t lane = 0; lane < DeviceQueue::kLanes; ++lane) {
      HMC_ASSIGN(auto end, endOf({{DeviceKind::cuda, device.index()}, nullptr, lane}));
      ends.push_back(std::move(end));
    }
  }
  const Deadline deadline = kCopyTimeout;
  for (const QueueEnd& end : ends) {
    Status waited = waitFor(*end.event, deadline);
    if (!waited.ok() && !devices_[static_cast<size_t>(end.index)].isBroken()) return waited;
  }
  return Status();
}

Status CudaBackend::release(void* ptr) {
  HMC_TRY(memory_.check(ptr, /*attached=*/false));
  HMC_TRY(drain());
  return memory_.remove(ptr, /*attached=*/false);
}

Status CudaBackend::detach(const Region& region) {
  HMC_TRY(memory_.check(region.ptr, /*attached=*/true));
  HMC_TRY(drain());
  return memory_.remove(region.ptr, /*attached=*/true);
}

Status CudaBackend::copy(const CopyBatch& batch, const DeviceQueue& queue) {
  HMC_TRY(checkCopy(batch, queue));
  CudaDevice& device = devices_[static_cast<size_t>(queue.device.index)];
  HMC_ASSIGN(auto on, device.streamOf(queue));
  Current current(driver_, on.context);
  HMC_TRY(current.status());
  Status enqueued = enqueue(batch, device, on);
  if (!queue.stream) return enqueued;
  // The stream may be gone when somebody wants to wait for the copies.
  auto end = endOf(queue);
  if (!end.ok()) return enqueued.ok() ? end.status() : enqueued;
  std::lock_guard lock(mutex_);
  while (!usersEnds_.empty()) {
    auto passed = usersEnds_.front().event->passed();
    if (passed.ok() && !*passed) break;
    usersEnds_.pop_front();
  }
  usersEnds_.push_back(*std::move(end));
  return enqueued;
}

Status CudaBackend::enqueue(const CopyBatch& batch, CudaDevice& device,
                            const CudaDevice::Stream& on) {
  if (CopyKernel::isFor(batch) && reaches(device, batch) && on.context == *device.context()) {
    return kernels_[static_cast<size_t>(device.index())].launch(batch, on.stream,
                                                                readsEven(device, batch));
  }
  return batch.forEachPiece([&](const CopyPiece& piece) -> Status {
    HMC_CUDA(driver_, cuMemcpyAsync, address(piece.dst), address(piece.src), piece.size, on.stream);
    return Status();
  });
}

// A kernel that touches what it cannot reach breaks the context for good, so this must be certain.
bool CudaBackend::reaches(const CudaDevice& device, const CopyBatch& batch) {
  for (const Region* side : {&batch.to, &batch.from}) {
    const bool host = side->device.isHost();
    if (host ? !device.has(kHostPointers) : side->device.index != device.index()) return false;
    // Memory of others may be made of several pieces, side by side.
    for (const char* at = side->at(0); at < side->at(side->size);) {
      const Region known = host ? pinnedAround(at) : memory_.reachedByKernels(at);
      if (!fits(address(at) - address(known.ptr), 1, known.size)) return false;
      at = known.at(known.size);
    }
  }
  return true;
}

bool CudaBackend::readsEven(const CudaDevice& device, const CopyBatch& batch) {
  if (!batch.even.places || !device.has(kHostPointers)) return false;
  const Region pinned = pinnedAround(batch.even.places);
  return fits(address(batch.even.places) - address(pinned.ptr), batch.blocks.size() * sizeof(Place),
              pinned.size);
}

Region CudaBackend::pinnedAround(const void* ptr) {
  std::lock_guard lock(mutex_);
  auto next = pinned_.upper_bound(static_cast<const char*>(ptr));
  if (next == pinned_.begin()) return {};
  const auto& [first, size] = *std::prev(next);
  return {const_cast<char*>(first), size, Device{}};
}

void CudaBackend::forget(const void* pinned) {
  std::lock_guard lock(mutex_);
  pinned_.erase(static_cast<const char*>(pinned));
}

Result<std::unique_ptr<DeviceEvent>> CudaBackend::event(int index) {
  HMC_TRY(checkIndex(index));
  return CudaEvent::create(driver_, words_, devices_, index);
}

Result<Region> CudaBackend::attach(const Share& share, void* at) {
  if (share.kind != DeviceKind::cuda || share.purpose != ShareFor::process) {
    return error(Code::invalidArgument, "CUDA cannot attach a share of {} for a {}",
                 deviceKindName(share.kind),
                 share.purpose == ShareFor::process ? "process" : "NIC");
  }
  HMC_ASSIGN(const int index, indexOf(share.device));
  return memory_.attach(share, index, at);
}

Result<std::unique_ptr<PinnedMemory>> CudaBackend::pin(const Region& host) {
  HMC_TRY(checkPinnable(host));
  HMC_ASSIGN(CuContext context, anyDevice().context());
  Current current(driver_, context);
  HMC_TRY(current.status());
  HMC_CUDA(driver_, cuMemHostRegister_v2, host.ptr, host.size, kHostPortable | kHostMapped);
  std::lock_guard lock(mutex_);
  pinned_.emplace(host.at(0), host.size);
  return std::unique_ptr<PinnedMemory>(std::make_unique<CudaPin>(*this, context, host.ptr));
}

// Never destroyed: threads may still copy while the process exits.
Result<Backend*> load() {
  HMC_ASSIGN(auto made, CudaBackend::create());
  return made.release();
}

}  // namespace hmc::cuda
