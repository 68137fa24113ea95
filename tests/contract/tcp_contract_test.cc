#include "base/fd_exchange.h"
#include "contract/transport_contract.h"
#include "transport/tcp/tcp.h"

namespace hmc::contract {

std::vector<Candidate> candidates() {
  Candidate candidate;
  candidate.name = "tcp";
  candidate.make = [] {
    // One for the process, as a Node would have it. Never destroyed: it outlives every transport.
    static FdExchange* exchange = (*FdExchange::create()).release();
    return tcp::create({.exchange = exchange->name()});
  };
  candidate.memories = {heapMemory(), hostMemory()};
  return {candidate};
}

}  // namespace hmc::contract
