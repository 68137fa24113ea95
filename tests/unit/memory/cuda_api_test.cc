// Holds src/memory/cuda/driver_api.h against NVIDIA's header, on machines that have it.
#include <cuda.h>
#include <gtest/gtest.h>

#include "memory/cuda/driver_api.h"
#include "unit/memory/alike.h"

namespace hmc::cuda {

namespace {

#define HMC_ROW(name, arguments) \
  static_assert(AreAlike<CuResult(*) arguments, decltype(&::name)>::value, #name);
HMC_CUDA_FUNCTIONS(HMC_ROW)
#undef HMC_ROW

static_assert(offsetof(CuMemProperties, allocFlags) == offsetof(CUmemAllocationProp, allocFlags));
static_assert(offsetof(CuMemProperties, location) == offsetof(CUmemAllocationProp, location));
static_assert(offsetof(CuMemAccess, flags) == offsetof(CUmemAccessDesc, flags));

struct Constant {
  int ours;
  int real;
};

}  // namespace

TEST(CudaApi, hasTheConstantsOfTheHeader) {
  const Constant constants[] = {
      {kSuccess, CUDA_SUCCESS},
      {kInvalidValue, CUDA_ERROR_INVALID_VALUE},
      {kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY},
      {kNotInitialized, CUDA_ERROR_NOT_INITIALIZED},
      {kDeinitialized, CUDA_ERROR_DEINITIALIZED},
      {kNoDevice, CUDA_ERROR_NO_DEVICE},
      {kNotReady, CUDA_ERROR_NOT_READY},
      {kAlreadyRegistered, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED},
      {kNotPermitted, CUDA_ERROR_NOT_PERMITTED},
      {kNotSupported, CUDA_ERROR_NOT_SUPPORTED},
      {kRdmaWithVirtualMemory, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED},
      {kDmaBuf, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED},
      {kFabric, 128},  // CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, since CUDA 12.3
      {kAttributeContext, CU_POINTER_ATTRIBUTE_CONTEXT},
      {kAttributeMemoryType, CU_POINTER_ATTRIBUTE_MEMORY_TYPE},
      {kAttributeIsManaged, CU_POINTER_ATTRIBUTE_IS_MANAGED},
      {kAttributeDevice, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL},
      {kAttributeIpcCapable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE},
      {kAttributeRangeStart, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR},
      {kAttributeRangeSize, CU_POINTER_ATTRIBUTE_RANGE_SIZE},
      {kAttributeHandleTypes, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES},
      {kAttributeMappingSize, CU_POINTER_ATTRIBUTE_MAPPING_SIZE},
      {kAttributeMappingBase, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR},
      {kMemoryTypeDevice, CU_MEMORYTYPE_DEVICE},
      {kAllocationPinned, CU_MEM_ALLOCATION_TYPE_PINNED},
      {kLocationDevice, CU_MEM_LOCATION_TYPE_DEVICE},
      {kHandleDescriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR},
      {kHandleFabric, 8},  // CU_MEM_HANDLE_TYPE_FABRIC, since CUDA 12.3
      {kReadWrite, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
      {kGranularityMinimum, CU_MEM_ALLOC_GRANULARITY_MINIMUM},
      {kRangeDmaBuf, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD},
      {kIpcLazyPeerAccess, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS},
      {kStreamNonBlocking, CU_STREAM_NON_BLOCKING},
      {kWaitAtLeast, CU_STREAM_WAIT_VALUE_GEQ},
      {kHostPortable, CU_MEMHOSTREGISTER_PORTABLE},
      {kHostMapped, CU_MEMHOSTREGISTER_DEVICEMAP},
      {kHostPortable, CU_MEMHOSTALLOC_PORTABLE},
      {kHostMapped, CU_MEMHOSTALLOC_DEVICEMAP},
  };
  for (const Constant& one : constants) EXPECT_EQ(one.ours, one.real);
}

}  // namespace hmc::cuda
