#include "contract/transport_contract.h"
#include "fakes/inprocess_transport.h"

namespace hmc::contract {

std::vector<Candidate> candidates() {
  Candidate candidate;
  candidate.name = "inprocess";
  candidate.make = [wire = fakes::makeInProcessWire()] { return fakes::createInProcess(wire); };
  candidate.memories = {heapMemory(), hostMemory()};
  candidate.acrossProcesses = false;
  return {candidate};
}

}  // namespace hmc::contract
