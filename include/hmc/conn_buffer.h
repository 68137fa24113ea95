#pragma once

#include "hmc/memory.h"

namespace hmc {

// The buffer that puts and gets work on: memory of one device, addressed by offset ("bias").
// Copies check their range, are finished when they return, and are safe from any thread; keeping
// two of them off the same bytes is the caller's matter. Size 0 is SUCCESS and does nothing.
class HMC_API ConnBuffer {
 public:
  void* ptr = nullptr;
  size_t buffer_size;
  Memory* mem_ops = nullptr;  // owned by the buffer
  MemoryType mem_type;        // never DEFAULT: what it stood for
  int device_id;

  // Throws std::runtime_error that says why when there is no such device or memory.
  ConnBuffer(int device_id, size_t buffer_size, MemoryType mem_type = MemoryType::DEFAULT);
  ~ConnBuffer();
  ConnBuffer(const ConnBuffer&) = delete;
  ConnBuffer& operator=(const ConnBuffer&) = delete;

  status_t writeFromCpu(const void* src, size_t size, size_t bias = 0);
  status_t readToCpu(void* dest, size_t size, size_t bias = 0);
  // The pointer may lie on any device that this machine has, on the host too: it is looked up.
  status_t writeFromGpu(const void* src, size_t size, size_t bias = 0);
  status_t readToGpu(void* dest, size_t size, size_t bias = 0);
  // The two ranges may overlap.
  status_t copyWithin(size_t dst_bias, size_t src_bias, size_t size);

 private:
  status_t write(const void* src, size_t size, size_t bias, bool fromGpu);
  status_t read(void* dest, size_t size, size_t bias, bool toGpu);
};

}  // namespace hmc
