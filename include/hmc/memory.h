#pragma once

#include "hmc/cpp14.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "hmc/device.h"
#include "hmc/export.h"
#include "hmc/status.h"

// Accelerator memory that peers can reach is allocated in units of this many bytes.
#define ACCEL_PAGE_SIZE (64 * 1024)

namespace hmc {

typedef uint64_t CNaddr;  ///< An address on a Cambricon device.

/// DEFAULT, CPU, NVIDIA_GPU, AMD_GPU, CAMBRICON_MLU, HUAWEI_ASCEND_NPU, MOORE_GPU: one for each row
/// of HMC_DEVICE_KINDS.
enum class MemoryType {
  DEFAULT,  ///< the accelerator of this machine, or the CPU if it has none
#define HMC_ROW(kind, product, type, library) type,
  HMC_DEVICE_KINDS(HMC_ROW)
#undef HMC_ROW
};

/// What DEFAULT means on this machine. Found at run time, by looking for the vendors' runtimes.
HMC_API MemoryType memory_supported();
/// Whether a network card can take that memory as a dma-buf.
HMC_API bool memory_dmabuf_supported();

/// Memory of one device. Every method is safe from any thread. After anything but SUCCESS,
/// lastError() has the sentence.
class HMC_API MemoryBase {
 public:
  /// Of that device.
  MemoryBase(int device, MemoryType type) : device_id(device), mem_type(type) {}
  virtual ~MemoryBase() = default;  ///< Memory that was allocated stays.
  MemoryBase(const MemoryBase&) = delete;
  MemoryBase& operator=(const MemoryBase&) = delete;

  virtual status_t init() = 0;                                            ///< As Memory has it.
  virtual status_t free() = 0;                                            ///< As Memory has it.
  virtual status_t allocateBuffer(void** addr, size_t size) = 0;          ///< As Memory has it.
  virtual status_t allocatePeerableBuffer(void** addr, size_t size) = 0;  ///< As Memory has it.
  virtual status_t freeBuffer(void* addr) = 0;                            ///< As Memory has it.
  /// As Memory has it.
  virtual status_t copyHostToDevice(void* dest, const void* src, size_t size) = 0;
  /// As Memory has it.
  virtual status_t copyDeviceToHost(void* dest, const void* src, size_t size) = 0;
  /// As Memory has it.
  virtual status_t copyDeviceToDevice(void* dest, const void* src, size_t size) = 0;

 protected:
  int device_id;
  MemoryType mem_type;
};

/// Allocates and copies on one device. Copies are done when they return. A constructed object is
/// ready: init() and free() remain for programs that call them. Every method is safe from any
/// thread, except that setDeviceIdAndMemoryType() must not run beside another call on the same
/// object.
class HMC_API Memory {
 public:
  /// If this machine has no such device, throws a std::runtime_error that says what is missing.
  /// Ignores the device number of CPU memory.
  explicit Memory(int device_id, MemoryType mem_type = MemoryType::DEFAULT);
  ~Memory();  ///< Memory that was allocated stays.
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// Memory of that type on our device number; throws as the constructor does.
  std::unique_ptr<MemoryBase> createMemoryClass(MemoryType mem_type);

  status_t init();  ///< Does nothing: a constructed object is ready.
  status_t free();  ///< Does nothing, either.
  /// From host memory to this device.
  status_t copyHostToDevice(void* dest, const void* src, size_t size);
  /// From this device to host memory.
  status_t copyDeviceToHost(void* dest, const void* src, size_t size);
  /// Between two places on this device.
  status_t copyDeviceToDevice(void* dest, const void* src, size_t size);
  /// Zero-filled. *addr is null on failure.
  status_t allocateBuffer(void** addr, size_t size);
  /// The same, in whole ACCEL_PAGE_SIZE units on accelerators.
  status_t allocatePeerableBuffer(void** addr, size_t size);
  /// Freeing a null pointer is SUCCESS.
  status_t freeBuffer(void* addr);
  /// Memory that was allocated stays valid; free it through a Memory of its own device. On failure,
  /// nothing changes.
  status_t setDeviceIdAndMemoryType(int device_id, MemoryType mem_type = MemoryType::DEFAULT);

  /// Never DEFAULT, but what it means here.
  MemoryType getMemoryType();
  status_t getInitStatus();  ///< SUCCESS.
  int getDeviceId();         ///< Of its kind, from 0 on.

 private:
  int deviceId_;
  MemoryType memoryType_;
  std::unique_ptr<MemoryBase> base_;
};

}  // namespace hmc
