#include "memory/cpu/cpu_backend.h"

#include <fcntl.h>

#include <atomic>

#include "base/error.h"
#include "memory/host_copy.h"
#include "memory/range_error.h"

namespace hmc {

namespace {

class HostEvent final : public DeviceEvent {
 public:
  Status record(const DeviceQueue& queue) override {
    HMC_TRY(checkQueue(queue));
    recorded_.store(true);
    return pass();
  }
  Status signal() override {
    if (!recorded_.load()) return pass();
    return error(Code::invalidArgument, "an event that was recorded cannot be signalled");
  }
  Result<bool> passed() override { return passed_.load(std::memory_order_acquire); }
  Status hold(const DeviceQueue& queue) override {
    HMC_TRY(checkQueue(queue));
    if (passed_.load(std::memory_order_acquire)) return Status();
    return error(Code::unsupported,
                 "host memory has no queue that could wait for an event; poll passed() instead");
  }

  static Status checkQueue(const DeviceQueue& queue) {
    if (queue.device == Device{} && !queue.stream) return Status();
    return error(Code::invalidArgument, "host memory has no queue {} of {}", queue.stream,
                 queue.device.toString());
  }

 private:
  Status pass() {
    passed_.store(true, std::memory_order_release);
    return Status();
  }
  std::atomic<bool> recorded_{false};
  std::atomic<bool> passed_{false};
};

}  // namespace

CpuBackend::CpuBackend() : Backend({DeviceKind::cpu, "host memory", {{DeviceUuid{}, "host"}}}) {}

Result<Region> CpuBackend::allocate(int index, size_t size) {
  HMC_TRY(checkIndex(index));
  HMC_ASSIGN(auto memory, createSharedMemory(size));
  return keep(std::move(memory), size);
}

Result<Region> CpuBackend::adopt(int fd, size_t size) {
  HMC_ASSIGN(auto memory, adoptSharedMemory(fd, size));
  return keep(std::move(memory), size);
}

Region CpuBackend::keep(SharedMemory memory, size_t size) {
  Region region{memory.mapping.get(), size, Device{}};
  // Here and not where a transport registers it: the first transfer over any of them would pay.
  Population pages(region, Access::readWrite, Population::From::start);
  pages.wait(Population::kMaking);
  std::lock_guard lock(mutex_);
  allocations_.emplace(region.at(0), Allocation{std::move(memory), size, std::move(pages)});
  return region;
}

Status CpuBackend::release(void* ptr) {
  Allocations::node_type gone;  // unmapped after the lock is given back
  std::lock_guard lock(mutex_);
  gone = allocations_.extract(static_cast<const char*>(ptr));
  if (gone.empty()) {
    return error(Code::invalidArgument,
                 "{} cannot be released: it is not the start of host memory allocated here", ptr);
  }
  return Status();
}

Status CpuBackend::copy(const CopyBatch& batch, const DeviceQueue& queue) {
  HMC_TRY(HostEvent::checkQueue(queue));
  if (!batch.to.device.isHost() || !batch.from.device.isHost()) {
    return error(Code::invalidArgument, "host memory cannot copy from {} to {}",
                 batch.from.device.toString(), batch.to.device.toString());
  }
  if (batch.bytes > 0 && (!batch.to.ptr || !batch.from.ptr)) {
    return error(Code::invalidArgument, "a copy of {} bytes has a null pointer", batch.bytes);
  }
  return batch.forEachPiece([](const CopyPiece& piece) {
    moveHost(piece.dst, piece.src, piece.size);
    return Status();
  });
}

Result<std::unique_ptr<DeviceEvent>> CpuBackend::event(int index) {
  HMC_TRY(checkIndex(index));
  return std::unique_ptr<DeviceEvent>(std::make_unique<HostEvent>());
}

Result<Region> CpuBackend::locate(const void* ptr) {
  std::lock_guard lock(mutex_);
  auto found = findAround(allocations_, ptr);
  if (found == allocations_.end()) {
    return error(Code::notFound, "{} is not in host memory allocated here", ptr);
  }
  return Region{const_cast<char*>(found->first), found->second.size, Device{}};
}

Result<Share> CpuBackend::share(const Region& region, ShareFor purpose) {
  if (purpose == ShareFor::nic) {
    return error(Code::unsupported,
                 "host memory has no dma-buf: a NIC registers its address as it is");
  }
  std::lock_guard lock(mutex_);
  auto found = findAround(allocations_, region.ptr);
  if (found == allocations_.end()) {
    return error(Code::unsupported,
                 "host memory at {} cannot be shared: only what allocate() made can be",
                 region.ptr);
  }
  auto offset = static_cast<size_t>(region.at(0) - found->first);
  if (!fits(offset, region.size, found->second.size)) {
    return rangeError("share", region.size, "", offset, found->second.size);
  }
  Fd fd(fcntl(found->second.memory.fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!fd) return errnoStatus("duplicate the descriptor of host memory");
  Share share;
  share.fds.push_back(std::move(fd));
  share.offset = offset;
  share.size = region.size;
  return share;
}

Result<std::unique_ptr<Reservation>> CpuBackend::reserve(size_t size, void* at) {
  return reservations_.reserve(Device{}, size, at);
}

Result<Region> CpuBackend::attach(const Share& share, void* at) {
  if (share.kind != DeviceKind::cpu || share.purpose != ShareFor::process ||
      share.fds.size() != 1) {
    return error(Code::invalidArgument, "a share of {} without a memfd cannot be host memory",
                 deviceKindName(share.kind));
  }
  HMC_TRY(indexOf(share.device).status());
  HMC_ASSIGN(auto window,
             mapWindow(share.fds[0].get(), share.offset, share.size, at, &reservations_));
  std::lock_guard lock(mutex_);
  attached_.emplace(window.ptr, std::move(window.mapping));
  return Region{window.ptr, share.size, Device{}};
}

Status CpuBackend::detach(const Region& region) {
  Attachments::node_type gone;  // unmapped after the lock is given back
  std::lock_guard lock(mutex_);
  gone = attached_.extract(region.at(0));
  if (gone.empty()) {
    return error(Code::invalidArgument, "{} cannot be detached: it was not attached here",
                 region.ptr);
  }
  return Status();
}

// The processor needs no pinned memory.
Result<std::unique_ptr<PinnedMemory>> CpuBackend::pin(const Region& host) {
  HMC_TRY(checkPinnable(host));
  return std::make_unique<PinnedMemory>();
}

}  // namespace hmc
