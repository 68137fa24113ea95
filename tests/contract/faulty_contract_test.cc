#include "contract/transport_contract.h"
#include "fakes/faulty_transport.h"
#include "fakes/inprocess_transport.h"

namespace hmc::contract {

// Late ends and short posts are allowed by the contract: with them everything still holds.
std::vector<Candidate> candidates() {
  Candidate candidate;
  candidate.name = "faulty";
  candidate.make = [wire = fakes::makeInProcessWire()]() -> Result<std::unique_ptr<Transport>> {
    auto faults = std::make_shared<fakes::Faults>();
    faults->delay = 3;
    faults->mostPerPost = 2;
    return fakes::makeFaulty(*fakes::createInProcess(wire), faults);
  };
  candidate.memories = {heapMemory()};
  candidate.acrossProcesses = false;
  return {candidate};
}

}  // namespace hmc::contract
