#include <cstdlib>

#include "contract/transport_contract.h"
#include "transport/verbs/verbs.h"

namespace hmc::contract {

// None where there is no RDMA device: `make test-rdma` runs this where there is one.
std::vector<Candidate> candidates() {
  // For this process and, inherited, for the target process: the device memory of these tests.
  setenv("HMC_MEMORY_PLUGIN", HMC_FAKE_PLUGIN, 1);
  if (!verbs::create().ok()) return {};
  Candidate candidate;
  candidate.name = "verbs";
  candidate.make = [] { return verbs::create({.channels = 2}); };
  candidate.memories = {heapMemory(), hostMemory(), deviceMemory({DeviceKind::cuda, 1})};
  candidate.reachesStoppedTarget = true;
  return {candidate};
}

TEST(VerbsDevice, isHere) {
  auto transport = verbs::create();
  if (!transport.ok()) GTEST_SKIP() << "nothing is tested: " << transport.status().message();
}

}  // namespace hmc::contract
