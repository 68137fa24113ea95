#include "contract/memory_contract.h"
#include "fakes/fake_accelerator.h"
#include "memory/cpu/cpu_backend.h"

namespace hmc {

std::vector<MemoryContractCase> memoryContractCases() {
  return {
      {"cpu", []() -> std::unique_ptr<Backend> { return std::make_unique<CpuBackend>(); }, ""},
      {"fake",
       []() -> std::unique_ptr<Backend> {
         return std::make_unique<FakeAccelerator>(FakeOptions::fromEnvironment());
       },
       "HMC_FAKE_VISIBLE_DEVICES",
       [](Backend& backend, int index) {
         return static_cast<FakeAccelerator&>(backend).createStream(index);
       }},
  };
}

}  // namespace hmc
