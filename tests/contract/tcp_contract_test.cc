#include "base/fd_exchange.h"
#include "contract/transport_contract.h"
#include "transport/tcp/tcp.h"

namespace hmc::contract {

namespace {
// One for the process, as a Node would have it. Never destroyed: it outlives every transport.
std::string exchange() {
  static FdExchange* exchange = (*FdExchange::create()).release();
  return exchange->name();
}
}  // namespace

std::vector<Candidate> candidates() {
  Candidate candidate;
  candidate.name = "tcp";
  candidate.make = [] { return tcp::create({.exchange = exchange()}); };
  candidate.memories = {heapMemory(), hostMemory()};
  Candidate encrypted = candidate;
  encrypted.name = "tls";
  encrypted.memories = {heapMemory()};
  encrypted.lease = std::chrono::milliseconds(1000);  // a killed peer signs no end: this ends it
  encrypted.make = [] { return tcp::create({.tls = true}); };
  Candidate checked = candidate;
  checked.name = "checked";
  checked.memories = {heapMemory()};
  checked.make = [] { return tcp::create({.exchange = exchange(), .integrity = true}); };
  return {candidate, encrypted, checked};
}

}  // namespace hmc::contract
