// Holds our prototypes of HIP against AMD's header, on machines that have it.
#define __HIP_PLATFORM_AMD__
#define __HIP_PLATFORM_HCC__  // what ROCm before 5.0 calls it
#define __HIP_DISABLE_CPP_FUNCTIONS__
#include <gtest/gtest.h>
#include <hip/hip_runtime_api.h>

#include "memory/hip/hip_api.h"
#include "unit/memory/alike.h"

namespace hmc::hip {

namespace {

// Ours is larger: there is room for members that newer versions have.
template <class Function>
struct WithRoom;
template <class... Arguments>
struct WithRoom<int (*)(Arguments...)> {
  using Type = int (*)(std::conditional_t<std::is_same_v<Arguments, CudaShapedPointer*>,
                                          hipPointerAttribute_t*, Arguments>...);
};

#define HMC_ROW(name, arguments) \
  static_assert(AreAlike<WithRoom<int(*) arguments>::Type, decltype(&::hip##name)>::value, #name);
HMC_CUDA_SHAPED_FUNCTIONS(HMC_ROW)
#undef HMC_ROW

#define HMC_ROW(name, arguments) \
  static_assert(AreAlike<int(*) arguments, decltype(&::name)>::value, #name);
HMC_HIP_FUNCTIONS(HMC_ROW)
#undef HMC_ROW

static_assert(AreAlike<const char* (*)(int), decltype(&::hipGetErrorName)>::value);
static_assert(AreAlike<const char* (*)(int), decltype(&::hipGetErrorString)>::value);

static_assert(sizeof(CudaShapedPointer) >= sizeof(hipPointerAttribute_t));
static_assert(offsetof(CudaShapedPointer, device) == offsetof(hipPointerAttribute_t, device));
static_assert(offsetof(CudaShapedPointer, hostPointer) ==
              offsetof(hipPointerAttribute_t, hostPointer));

struct Constant {
  int ours;
  int real;
};

}  // namespace

TEST(HipApi, hasTheConstantsOfTheHeader) {
  const Constant constants[] = {
      {CudaShaped::kSuccess, hipSuccess},
      {CudaShaped::kInvalidValue, hipErrorInvalidValue},
      {CudaShaped::kOutOfMemory, hipErrorOutOfMemory},
      {CudaShaped::kNoDevice, hipErrorNoDevice},
      {CudaShaped::kNotReady, hipErrorNotReady},
      {CudaShaped::kAlreadyRegistered, hipErrorHostMemoryAlreadyRegistered},
      {CudaShaped::kNotSupported, hipErrorNotSupported},
      {CudaShaped::kHostToDevice, hipMemcpyHostToDevice},
      {CudaShaped::kDeviceToHost, hipMemcpyDeviceToHost},
      {CudaShaped::kDeviceToDevice, hipMemcpyDeviceToDevice},
      {CudaShaped::kStreamNonBlocking, hipStreamNonBlocking},
      {CudaShaped::kEventDisableTiming, hipEventDisableTiming},
      {CudaShaped::kHostPortable, hipHostRegisterPortable},
      {CudaShaped::kHostMapped, hipHostRegisterMapped},
      {kIpcLazyPeerAccess, hipIpcMemLazyEnablePeerAccess},
      {HIP_VERSION < kRocm6 ? kMemoryTypeDevice5 : kMemoryTypeDevice6, hipMemoryTypeDevice},
  };
  for (const Constant& one : constants) EXPECT_EQ(one.ours, one.real);
}

}  // namespace hmc::hip
