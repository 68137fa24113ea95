// Every vendor of tests/fakes in one process, whose libraries are found by LD_LIBRARY_PATH.

#include "contract/memory_contract.h"
#include "memory/runtime_backend.h"

namespace hmc {

// clang-format off
#define HMC_VENDORS(row)             \
  row(hip, "HIP_VISIBLE_DEVICES")    \
  row(musa, "MUSA_VISIBLE_DEVICES")  \
  row(acl, "ASCEND_RT_VISIBLE_DEVICES") \
  row(cnrt, "MLU_VISIBLE_DEVICES")
// clang-format on

#define HMC_ROW(kind, variable) \
  namespace kind {              \
  Result<Backend*> load();      \
  }
HMC_VENDORS(HMC_ROW)
#undef HMC_ROW

namespace {

template <Result<Backend*> (*load)()>
std::unique_ptr<Backend> make() {
  auto made = load();
  EXPECT_TRUE(made.ok()) << made.status().toString();
  return std::unique_ptr<Backend>(made.ok() ? *made : nullptr);
}

Result<DeviceQueue> makeStream(Backend& backend, int index) {
  Runtime& runtime = static_cast<RuntimeBackend&>(backend).runtime();
  UsedDevice used(runtime, index);
  HMC_ASSIGN(void* stream, runtime.createStream());
  return DeviceQueue{{backend.facts().kind, index}, stream};
}

}  // namespace

std::vector<MemoryContractCase> memoryContractCases() {
  return {
#define HMC_ROW(kind, variable) {#kind, make<kind::load>, variable, makeStream},
      HMC_VENDORS(HMC_ROW)
#undef HMC_ROW
  };
}

}  // namespace hmc
