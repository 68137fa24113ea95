#pragma once

#include <cstddef>
#include <cstdint>

// What we use of NVIDIA's driver API (cuda.h of CUDA 12.0 and newer), so that neither building nor
// running needs a toolkit. tests/unit/memory/cuda_api_test.cc holds every line here against the
// real header where one is installed. The tags are those of cuda.h: the handles are the same types.
struct CUctx_st;
struct CUstream_st;
struct CUmod_st;
struct CUfunc_st;

namespace hmc::cuda {

using CuResult = int;
using CuDevice = int;
using CuPointer = unsigned long long;
using CuContext = CUctx_st*;
using CuStream = CUstream_st*;
using CuModule = CUmod_st*;
using CuFunction = CUfunc_st*;
using CuAllocation = unsigned long long;

struct CuUuid {
  char bytes[16];
};
struct CuIpcMemHandle {
  char reserved[64];
};
struct CuFabricHandle {
  unsigned char data[64];
};
struct CuMemLocation {
  int type;
  int id;
};
struct CuMemProperties {
  int type;
  int requestedHandleTypes;
  CuMemLocation location;
  void* win32HandleMetaData;
  struct {
    unsigned char compressionType;
    unsigned char gpuDirectRDMACapable;
    unsigned short usage;
    unsigned char reserved[4];
  } allocFlags;
};
struct CuMemAccess {
  CuMemLocation location;
  int flags;
};

enum : CuResult {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kDeinitialized = 4,
  kNoDevice = 100,
  kInvalidContext = 201,
  kNotReady = 600,
  kAlreadyRegistered = 712,
  kNotPermitted = 800,
  kNotSupported = 801,
};

enum : int {
  kMultiprocessors = 16,  // CUdevice_attribute
  kHostPointers = 91,
  kVirtualMemory = 102,
  kPosixDescriptor = 103,
  kRdmaWithVirtualMemory = 110,
  kDmaBuf = 124,
  kFabric = 128,

  kAttributeContext = 1,  // CUpointer_attribute
  kAttributeMemoryType = 2,
  kAttributeIsManaged = 8,
  kAttributeDevice = 9,
  kAttributeIpcCapable = 10,
  kAttributeRangeStart = 11,
  kAttributeRangeSize = 12,
  kAttributeHandleTypes = 14,
  kAttributeMappingSize = 18,
  kAttributeMappingBase = 19,

  kMemoryTypeDevice = 2,  // CUmemorytype
  kAllocationPinned = 1,  // CUmemAllocationType
  kLocationDevice = 1,    // CUmemLocationType
  kHandleDescriptor = 1,  // CUmemAllocationHandleType
  kHandleFabric = 8,
  kReadWrite = 3,           // CUmemAccess_flags
  kGranularityMinimum = 0,  // CUmemAllocationGranularity_flags
  kRangeDmaBuf = 1,         // CUmemRangeHandleType
  kIpcLazyPeerAccess = 1,   // CUipcMem_flags
  kStreamNonBlocking = 1,   // CUstream_flags
  kWaitAtLeast = 0,         // CUstreamWaitValue_flags
  kHostPortable = 1,        // CU_MEMHOSTREGISTER_*, CU_MEMHOSTALLOC_*
  kHostMapped = 2,
};

// row(symbol in libcuda.so.1, arguments)
// clang-format off
#define HMC_CUDA_FUNCTIONS(row) \
  row(cuInit, (unsigned)) \
  row(cuDriverGetVersion, (int*)) \
  row(cuGetErrorName, (CuResult, const char**)) \
  row(cuGetErrorString, (CuResult, const char**)) \
  row(cuDeviceGetCount, (int*)) \
  row(cuDeviceGet, (CuDevice*, int)) \
  row(cuDeviceGetName, (char*, int, CuDevice)) \
  row(cuDeviceGetUuid_v2, (CuUuid*, CuDevice)) \
  row(cuDeviceGetAttribute, (int*, int, CuDevice)) \
  row(cuDeviceCanAccessPeer, (int*, CuDevice, CuDevice)) \
  row(cuDevicePrimaryCtxRetain, (CuContext*, CuDevice)) \
  row(cuCtxGetCurrent, (CuContext*)) \
  row(cuCtxPushCurrent_v2, (CuContext)) \
  row(cuCtxPopCurrent_v2, (CuContext*)) \
  row(cuCtxSynchronize, ()) \
  row(cuMemGetInfo_v2, (size_t*, size_t*)) \
  row(cuPointerGetAttributes, (unsigned, int*, void**, CuPointer)) \
  row(cuMemGetAllocationGranularity, (size_t*, const CuMemProperties*, int)) \
  row(cuMemCreate, (CuAllocation*, size_t, const CuMemProperties*, unsigned long long)) \
  row(cuMemRelease, (CuAllocation)) \
  row(cuMemRetainAllocationHandle, (CuAllocation*, void*)) \
  row(cuMemAddressReserve, (CuPointer*, size_t, size_t, CuPointer, unsigned long long)) \
  row(cuMemAddressFree, (CuPointer, size_t)) \
  row(cuMemMap, (CuPointer, size_t, size_t, CuAllocation, unsigned long long)) \
  row(cuMemUnmap, (CuPointer, size_t)) \
  row(cuMemSetAccess, (CuPointer, size_t, const CuMemAccess*, size_t)) \
  row(cuMemExportToShareableHandle, (void*, CuAllocation, int, unsigned long long)) \
  row(cuMemImportFromShareableHandle, (CuAllocation*, void*, int)) \
  row(cuMemGetHandleForAddressRange, (void*, CuPointer, size_t, int, unsigned long long)) \
  row(cuIpcGetMemHandle, (CuIpcMemHandle*, CuPointer)) \
  row(cuIpcOpenMemHandle_v2, (CuPointer*, CuIpcMemHandle, unsigned)) \
  row(cuIpcCloseMemHandle, (CuPointer)) \
  row(cuMemHostAlloc, (void**, size_t, unsigned)) \
  row(cuMemHostRegister_v2, (void*, size_t, unsigned)) \
  row(cuMemHostUnregister, (void*)) \
  row(cuStreamCreateWithPriority, (CuStream*, unsigned, int)) \
  row(cuStreamQuery, (CuStream)) \
  row(cuStreamGetCtx, (CuStream, CuContext*)) \
  row(cuStreamWriteValue32_v2, (CuStream, CuPointer, uint32_t, unsigned)) \
  row(cuStreamWaitValue32_v2, (CuStream, CuPointer, uint32_t, unsigned)) \
  row(cuMemcpyAsync, (CuPointer, CuPointer, size_t, CuStream)) \
  row(cuModuleLoadData, (CuModule*, const void*)) \
  row(cuModuleGetFunction, (CuFunction*, CuModule, const char*)) \
  row(cuLaunchKernel, (CuFunction, unsigned, unsigned, unsigned, unsigned, unsigned, \
      unsigned, unsigned, CuStream, void**, void**)) \
  row(cuMemAlloc_v2, (CuPointer*, size_t)) \
  row(cuMemsetD8Async, (CuPointer, unsigned char, size_t, CuStream))
// clang-format on

}  // namespace hmc::cuda
