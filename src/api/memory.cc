#include "hmc/memory.h"

#include <stdexcept>

#include "api/documented_types.h"
#include "base/error.h"
#include "node/facade.h"

namespace hmc {

namespace {

// Any Backend as the documented interface. There is one class for all vendors, because Backend is
// where they differ.
class DeviceMemory final : public MemoryBase {
 public:
  DeviceMemory(Backend& backend, const Device& device)
      : MemoryBase(device.index, memoryTypeOf(device.kind)), backend_(backend), device_(device) {}

  status_t init() override { return status_t::SUCCESS; }
  status_t free() override { return status_t::SUCCESS; }

  status_t allocateBuffer(void** addr, size_t size) override {
    if (!addr) return report(error(Code::invalidArgument, "allocateBuffer: addr is null"));
    *addr = nullptr;
    auto made = backend_.allocate(device_.index, size);
    if (!made.ok()) return report(made.status());
    *addr = made->ptr;
    return status_t::SUCCESS;
  }

  status_t allocatePeerableBuffer(void** addr, size_t size) override {
    size_t over = size % ACCEL_PAGE_SIZE;
    size_t missing = device_.isHost() || over == 0 ? 0 : ACCEL_PAGE_SIZE - over;
    // A size that rounding would wrap is left alone: no device has that much.
    return allocateBuffer(addr, size + missing < size ? size : size + missing);
  }

  status_t freeBuffer(void* addr) override {
    return addr ? report(backend_.release(addr)) : status_t::SUCCESS;
  }

  status_t copyHostToDevice(void* dest, const void* src, size_t size) override {
    return copyChecked({dest, size, device_}, {const_cast<void*>(src), size, Device{}});
  }
  status_t copyDeviceToHost(void* dest, const void* src, size_t size) override {
    return copyChecked({dest, size, Device{}}, {const_cast<void*>(src), size, device_});
  }
  status_t copyDeviceToDevice(void* dest, const void* src, size_t size) override {
    return copyChecked({dest, size, whereIs(dest)}, {const_cast<void*>(src), size, whereIs(src)});
  }

 private:
  // Two devices of one vendor may be involved, of which we are one.
  Device whereIs(const void* ptr) {
    auto found = backend_.locate(ptr);
    return found.ok() ? found->device : device_;
  }

  static status_t copyChecked(const Region& dst, const Region& src) {
    if (!dst.ptr || !src.ptr) {
      return report(error(Code::invalidArgument, "a copy of {} bytes from {} to {} has a null {}",
                          src.size, src.device.toString(), dst.device.toString(),
                          dst.ptr ? "source" : "destination"));
    }
    return report(move(dst, src));
  }

  Backend& backend_;
  const Device device_;
};

Result<std::unique_ptr<MemoryBase>> makeDeviceMemory(int deviceId, MemoryType type) {
  HMC_ASSIGN(Device device, deviceFor(deviceId, type));
  HMC_ASSIGN(Backend * backend, findBackend(device));
  return std::unique_ptr<MemoryBase>(new DeviceMemory(*backend, device));
}

}  // namespace

MemoryType memory_supported() {
  return resolved(MemoryType::DEFAULT);
}

bool memory_dmabuf_supported() {
  return false;  // no backend exports dma-buf yet
}

Memory::Memory(int deviceId, MemoryType memType)
    : deviceId_(deviceId), memoryType_(resolved(memType)), base_(createMemoryClass(memType)) {}

Memory::~Memory() = default;

std::unique_ptr<MemoryBase> Memory::createMemoryClass(MemoryType memType) {
  auto made = makeDeviceMemory(deviceId_, memType);
  if (!made.ok()) {
    report(made.status());
    throw std::runtime_error(made.status().message());
  }
  return *std::move(made);
}

status_t Memory::setDeviceIdAndMemoryType(int deviceId, MemoryType memType) {
  auto made = makeDeviceMemory(deviceId, memType);
  if (!made.ok()) return report(made.status());
  base_ = *std::move(made);
  deviceId_ = deviceId;
  memoryType_ = resolved(memType);
  return status_t::SUCCESS;
}

status_t Memory::init() {
  return base_->init();
}

status_t Memory::free() {
  return base_->free();
}

status_t Memory::copyHostToDevice(void* dest, const void* src, size_t size) {
  return base_->copyHostToDevice(dest, src, size);
}

status_t Memory::copyDeviceToHost(void* dest, const void* src, size_t size) {
  return base_->copyDeviceToHost(dest, src, size);
}

status_t Memory::copyDeviceToDevice(void* dest, const void* src, size_t size) {
  return base_->copyDeviceToDevice(dest, src, size);
}

status_t Memory::allocateBuffer(void** addr, size_t size) {
  return base_->allocateBuffer(addr, size);
}

status_t Memory::allocatePeerableBuffer(void** addr, size_t size) {
  return base_->allocatePeerableBuffer(addr, size);
}

status_t Memory::freeBuffer(void* addr) {
  return base_->freeBuffer(addr);
}

MemoryType Memory::getMemoryType() {
  return memoryType_;
}

status_t Memory::getInitStatus() {
  return status_t::SUCCESS;
}

int Memory::getDeviceId() {
  return deviceId_;
}

}  // namespace hmc
