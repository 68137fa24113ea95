#include "contract/transport_contract.h"
#include "transport/verbs/verbs.h"

namespace hmc::contract {

// Against tests/fakes/fake_libibverbs, which LD_LIBRARY_PATH puts before the real one, and the fake
// accelerator, whose memory it reaches by dma-buf.
std::vector<Candidate> candidates() {
  return {{.name = "verbs",
           .make = [] { return verbs::create({.channels = 2}); },
           .memories = {heapMemory(), hostMemory(), deviceMemory({DeviceKind::cuda, 1})},
           .acrossProcesses = false}};
}

}  // namespace hmc::contract
