#include "contract/memory_contract.h"

#include "fakes/fake_accelerator.h"
#include "memory/cpu/cpu_backend.h"

namespace hmc {

INSTANTIATE_TEST_SUITE_P(Backends, MemoryContract,
                         testing::Values(MemoryContractCase{"cpu",
                                                            []() -> std::unique_ptr<Backend> {
                                                              return std::make_unique<CpuBackend>();
                                                            }},
                                         MemoryContractCase{
                                             "fake",
                                             []() -> std::unique_ptr<Backend> {
                                               return std::make_unique<FakeAccelerator>();
                                             }}),
                         memoryContractName);

}  // namespace hmc
