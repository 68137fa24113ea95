#pragma once

#include <chrono>
#include <cstddef>

#include "bench/figure.h"
#include "hmc/deadline.h"
#include "hmc/result.h"

// What TCP over loopback does without us: the ceiling of everything that goes through a socket.
// Two processes, TCP_NODELAY, the system's own buffer sizes. The second process is forked and then
// makes system calls only, so threads of the caller do not matter.
namespace hmc::bench::raw_socket {

struct Exchange {
  size_t bytes = 8;   // sent
  size_t answer = 8;  // sent back once all of them have arrived
  size_t rounds = 1;  // timed, after a tenth as many to warm up
  bool spin = false;  // both sides ask again and again instead of waiting in the kernel
  Deadline deadline = std::chrono::seconds(120);
};

// The time of one round: there and back.
Result<Percentiles> roundTrips(const Exchange& exchange);

// The median time in which a message goes there and comes back.
Result<double> echoRoundTripNs(size_t bytes, size_t rounds, bool spin);

// GB/s of messages of that size, each confirmed by one byte. The median of the rounds.
Result<double> bandwidth(size_t bytes, size_t rounds);

}  // namespace hmc::bench::raw_socket
