#include "contract/memory_contract.h"
#include "memory/cuda/cuda_backend.h"

// On a real GPU; see tests/fakes for machines without one.
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
  if (!made.ok()) GTEST_SKIP() << made.status().message();
  EXPECT_GT((*made)->facts().deviceCount(), 0);
}

}  // namespace hmc
