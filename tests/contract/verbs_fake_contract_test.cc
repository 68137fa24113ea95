#include "contract/transport_contract.h"
#include "transport/verbs/verbs.h"

namespace hmc::contract {

// Against tests/fakes/fake_libibverbs, which LD_LIBRARY_PATH puts before the real one.
std::vector<Candidate> candidates() {
  return {{.name = "verbs",
           .make = [] { return verbs::create({.channels = 2}); },
           .memories = {heapMemory(), hostMemory()},
           .acrossProcesses = false}};
}

}  // namespace hmc::contract
