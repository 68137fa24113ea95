#pragma once

#include "memory/cuda_shaped_runtime.h"

// What we use of ROCm's HIP beyond what it has in common with CUDA's runtime API.
//
// Held against hip/hip_runtime_api.h of ROCm 5.2.3 by tests/unit/memory/hip_api_test.cc, where it
// is installed. Cited, not checked against a header:
// - hipMemoryTypeDevice became 2 with ROCm 6.0: hip_runtime_api.h of that version;
// - hsa_amd_portable_export_dmabuf() of libhsa-runtime64.so.1: ROCr's hsa_ext_amd.h, as RCCL calls
//   it;
// - Hygon's DTK has the same functions in libgalaxyhip.so.5, and exports no dma-buf: assumed.
namespace hmc::hip {

struct HipUuid {
  char bytes[16];
};

enum : int {
  kIpcLazyPeerAccess = 0,  // ignored by the runtime
  kMemoryTypeDevice5 = 1,  // hipMemoryType before ROCm 6.0
  kMemoryTypeDevice6 = 2,  // and since
  kRocm6 = 60000000,       // hipRuntimeGetVersion() of ROCm 6.0.0
  kHsaSuccess = 0,
};

// row(symbol, arguments)
// clang-format off
#define HMC_HIP_FUNCTIONS(row)                          \
  row(hipDeviceGetName, (char*, int, int))              \
  row(hipDeviceGetUuid, (HipUuid*, int))                \
  row(hipMemGetAddressRange, (void**, size_t*, void*))
// clang-format on

using ExportDmaBuf = int(const void* ptr, size_t size, int* fd, uint64_t* offset);

}  // namespace hmc::hip
