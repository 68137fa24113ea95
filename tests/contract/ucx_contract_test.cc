#include <cstdlib>

#include "contract/transport_contract.h"
#include "fakes/quiet_ucx.h"
#include "transport/ucx/ucx.h"

namespace hmc::contract {

std::vector<Candidate> candidates() {
  // For this process and, inherited, for the target process: the device memory of these tests.
  setenv("HMC_MEMORY_PLUGIN", HMC_FAKE_PLUGIN, 1);
  test::keepUcxFromHookingMemory();
  Candidate candidate;
  candidate.name = "ucx";
  candidate.make = [] { return ucx::create(); };
  candidate.memories = {heapMemory(), hostMemory(), deviceMemory({DeviceKind::cuda, 1})};
  return {candidate};
}

}  // namespace hmc::contract
