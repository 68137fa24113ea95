#include "contract/transport_contract.h"
#include "transport/tcp/tcp.h"

namespace hmc::contract {

std::vector<Candidate> candidates() {
  Candidate candidate;
  candidate.name = "tcp";
  candidate.make = [] { return tcp::create(); };
  candidate.memories = {heapMemory(), hostMemory()};
  return {candidate};
}

}  // namespace hmc::contract
