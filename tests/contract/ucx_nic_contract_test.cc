#include "contract/transport_contract.h"
#include "transport/ucx/ucx.h"

namespace hmc::contract {

// Against tests/fakes/fake_ucx_nic, which UCX_ROOT puts before the real library. Within one
// process: that NIC does not know of a peer that is gone.
std::vector<Candidate> candidates() {
  Candidate candidate;
  candidate.name = "ucx";
  candidate.make = [] { return ucx::create(); };
  candidate.memories = {heapMemory(), hostMemory()};
  candidate.acrossProcesses = false;
  return {candidate};
}

// Else messages would serve, and the hardware's part would not be tested.
TEST_P(TransportContract, takesTheLaneOfHardware) {
  Buffer target = targetBuffer(*b_, 4096);
  Ends ends = connect();
  EXPECT_EQ(import(*ends.a, target)->how(), "rc_fake/nic0:1");
}

}  // namespace hmc::contract
