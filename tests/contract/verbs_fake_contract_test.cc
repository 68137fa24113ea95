#include "contract/transport_contract.h"
#include "transport/verbs/verbs.h"

namespace hmc::contract {

// Against tests/fakes/fake_libibverbs, which LD_LIBRARY_PATH puts before the real one.
std::vector<Candidate> candidates() {
  Candidate candidate;
  candidate.name = "verbs";
  candidate.make = [] { return verbs::create({.channels = 2}); };
  candidate.memories = {heapMemory(), hostMemory()};
  candidate.acrossProcesses = false;
  return {candidate};
}

}  // namespace hmc::contract
