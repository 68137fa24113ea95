#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "hmc/device.h"
#include "hmc/export.h"
#include "hmc/status.h"

// Memory of accelerators that peers shall reach comes in units of this many bytes.
#define ACCEL_PAGE_SIZE (64 * 1024)

namespace hmc {

typedef uint64_t CNaddr;

// DEFAULT, CPU, NVIDIA_GPU, AMD_GPU, CAMBRICON_MLU, HUAWEI_ASCEND_NPU, MOORE_GPU: one for each row
// of HMC_DEVICE_KINDS.
enum class MemoryType {
  DEFAULT,  // the accelerator that this machine has, CPU when it has none
#define HMC_ROW(kind, product, type, library) type,
  HMC_DEVICE_KINDS(HMC_ROW)
#undef HMC_ROW
};

// What DEFAULT stands for on this machine. Found out at run time, by looking for vendors' runtimes.
HMC_API MemoryType memory_supported();
// Whether that memory can be handed to a network card as a dma-buf.
HMC_API bool memory_dmabuf_supported();

// Memory of one device. Every method is safe from any thread and leaves the sentence behind a value
// that is not SUCCESS in lastError().
class HMC_API MemoryBase {
 public:
  MemoryBase(int device, MemoryType type) : device_id(device), mem_type(type) {}
  virtual ~MemoryBase() = default;
  MemoryBase(const MemoryBase&) = delete;
  MemoryBase& operator=(const MemoryBase&) = delete;

  virtual status_t init() = 0;
  virtual status_t free() = 0;
  virtual status_t allocateBuffer(void** addr, size_t size) = 0;
  virtual status_t allocatePeerableBuffer(void** addr, size_t size) = 0;
  virtual status_t freeBuffer(void* addr) = 0;
  virtual status_t copyHostToDevice(void* dest, const void* src, size_t size) = 0;
  virtual status_t copyDeviceToHost(void* dest, const void* src, size_t size) = 0;
  virtual status_t copyDeviceToDevice(void* dest, const void* src, size_t size) = 0;

 protected:
  int device_id;
  MemoryType mem_type;
};

// Allocates and copies on one device. Copies are finished when they return. Ready once constructed;
// init() and free() remain for programs that call them. setDeviceIdAndMemoryType() must not run
// beside other calls on the same object; those are safe from any thread.
class HMC_API Memory {
 public:
  // Throws std::runtime_error that says what is missing when this machine has no such device. The
  // device number of CPU memory is ignored.
  explicit Memory(int device_id, MemoryType mem_type = MemoryType::DEFAULT);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Memory of that type on our device number; throws as the constructor does.
  std::unique_ptr<MemoryBase> createMemoryClass(MemoryType mem_type);

  status_t init();
  status_t free();
  status_t copyHostToDevice(void* dest, const void* src, size_t size);
  status_t copyDeviceToHost(void* dest, const void* src, size_t size);
  status_t copyDeviceToDevice(void* dest, const void* src, size_t size);
  // Zero-filled. *addr is null when it fails.
  status_t allocateBuffer(void** addr, size_t size);
  // The same, in whole ACCEL_PAGE_SIZE units on accelerators.
  status_t allocatePeerableBuffer(void** addr, size_t size);
  // Freeing a null pointer is SUCCESS.
  status_t freeBuffer(void* addr);
  // What was allocated stays valid; free it through a Memory of the device that it is on. When it
  // fails, everything stays as it was.
  status_t setDeviceIdAndMemoryType(int device_id, MemoryType mem_type = MemoryType::DEFAULT);

  // Never DEFAULT: what it stood for.
  MemoryType getMemoryType();
  status_t getInitStatus();
  int getDeviceId();

 private:
  int deviceId_;
  MemoryType memoryType_;
  std::unique_ptr<MemoryBase> base_;
};

}  // namespace hmc
