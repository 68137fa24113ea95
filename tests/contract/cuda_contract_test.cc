#include "contract/memory_contract.h"
#include "memory/cuda/cuda_backend.h"

// On a real GPU, and once more (HMC_FAKE_LIBCUDA) on tests/fakes/fake_libcuda.cc, which
// LD_LIBRARY_PATH puts before the real one.
namespace hmc {

namespace {

std::unique_ptr<Backend> make() {
  auto made = cuda::CudaBackend::create();
  EXPECT_TRUE(made.ok()) << made.status().toString();
  return made.ok() ? *std::move(made) : nullptr;
}

Result<DeviceQueue> makeStream(Backend& backend, int index) {
  const cuda::Driver& driver = static_cast<cuda::CudaBackend&>(backend).driver();
  cuda::CuContext context = nullptr;
  HMC_CUDA(driver, cuDevicePrimaryCtxRetain, &context, index);
  cuda::Current current(driver, context);
  cuda::CuStream stream = nullptr;
  HMC_CUDA(driver, cuStreamCreateWithPriority, &stream, cuda::kStreamNonBlocking, 0);
  return DeviceQueue{{DeviceKind::cuda, index}, stream};
}

}  // namespace

// Without a GPU there is only runsOnAGpu, which says so.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MemoryContract);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MemoryContractEvents);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MemoryContractPlaces);

std::vector<MemoryContractCase> memoryContractCases() {
  if (!cuda::CudaBackend::create().ok()) return {};
  return {{"cuda", make, "CUDA_VISIBLE_DEVICES", makeStream}};
}

TEST(CudaContract, runsOnAGpu) {
  auto made = cuda::CudaBackend::create();
#ifdef HMC_FAKE_LIBCUDA
  ASSERT_TRUE(made.ok()) << made.status().toString();
  EXPECT_EQ((*made)->facts().devices[0].name.rfind("Fake GPU", 0), 0u);
#endif
  if (!made.ok()) GTEST_SKIP() << made.status().message();
  EXPECT_GT((*made)->facts().deviceCount(), 0);
}

}  // namespace hmc
