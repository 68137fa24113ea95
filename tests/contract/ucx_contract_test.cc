#include "contract/transport_contract.h"
#include "transport/ucx/ucx.h"

namespace hmc::contract {

std::vector<Candidate> candidates() {
  Candidate candidate;
  candidate.name = "ucx";
  candidate.make = [] { return ucx::create(); };
  candidate.memories = {heapMemory(), hostMemory()};
  // Where messages carry puts, UCX at the target writes to whatever address they name.
  candidate.unregisterStops = false;
  return {candidate};
}

}  // namespace hmc::contract
