#pragma once

#include "hmc/cpp14.h"

#include "hmc/memory.h"

namespace hmc {

/// The buffer that puts and gets use: memory of one device, addressed by offset ("bias"). Copies
/// check their range, are done when they return, and are safe from any thread; the caller makes
/// sure that no two of them touch the same bytes. Size 0 does nothing and is SUCCESS.
class HMC_API ConnBuffer {
 public:
  void* ptr = nullptr;        ///< Where it begins.
  size_t buffer_size;         ///< In bytes.
  Memory* mem_ops = nullptr;  ///< owned by the buffer
  MemoryType mem_type;        ///< never DEFAULT, but what it means here
  int device_id;              ///< Of its kind, from 0 on.

  /// If there is no such device or memory, throws a std::runtime_error that says why.
  ConnBuffer(int device_id, size_t buffer_size, MemoryType mem_type = MemoryType::DEFAULT);
  ~ConnBuffer();  ///< Frees the memory.
  ConnBuffer(const ConnBuffer&) = delete;
  ConnBuffer& operator=(const ConnBuffer&) = delete;

  /// Copies host memory to `bias`.
  status_t writeFromCpu(const void* src, size_t size, size_t bias = 0);
  /// Copies from `bias` to host memory.
  status_t readToCpu(void* dest, size_t size, size_t bias = 0);
  /// The pointer may be on any device of this machine, or on the host: we look it up.
  status_t writeFromGpu(const void* src, size_t size, size_t bias = 0);
  status_t readToGpu(void* dest, size_t size, size_t bias = 0);  ///< The other way.
  /// The two ranges may overlap.
  status_t copyWithin(size_t dst_bias, size_t src_bias, size_t size);
};

}  // namespace hmc
