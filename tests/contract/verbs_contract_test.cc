#include "contract/transport_contract.h"
#include "transport/verbs/verbs.h"

namespace hmc::contract {

// None where there is no RDMA device: `make test-rdma` runs this where there is one.
std::vector<Candidate> candidates() {
  if (!verbs::create().ok()) return {};
  return {{.name = "verbs",
           .make = [] { return verbs::create({.channels = 2}); },
           .memories = {heapMemory(), hostMemory()},
           .reachesStoppedTarget = true}};
}

TEST(VerbsDevice, isHere) {
  auto transport = verbs::create();
  if (!transport.ok()) GTEST_SKIP() << "nothing is tested: " << transport.status().message();
}

}  // namespace hmc::contract
