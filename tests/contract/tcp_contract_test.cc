#include "contract/transport_contract.h"
#include "transport/tcp/tcp.h"

namespace hmc::contract {

std::vector<Candidate> candidates() {
  Candidate candidate;
  candidate.name = "tcp";
  candidate.make = [] { return tcp::create(); };
  candidate.memories = {heapMemory(), hostMemory()};
  Candidate encrypted = candidate;
  encrypted.name = "tls";
  encrypted.memories = {heapMemory()};
  encrypted.lease = std::chrono::milliseconds(1000);  // a killed peer signs no end: this ends it
  encrypted.make = [] { return tcp::create({.tls = true}); };
  return {candidate, encrypted};
}

}  // namespace hmc::contract
