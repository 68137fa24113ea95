#include <algorithm>

#include <fmt/core.h>

#include "bench/against/rivals.h"
#include "bench/raw_socket.h"
#include "bench/report/units.h"

namespace hmc::bench {

namespace {

size_t roundsOf(size_t bytes) {
  return std::clamp<size_t>((size_t{128} << 20) / bytes, 5, 5000);
}

}  // namespace

Status runSocket(const Challenge& challenge, Progress& progress, Comparison& found) {
  progress.expect(3 * challenge.sizes.size());
  auto measure = [&](size_t bytes, size_t answer, bool spin) {
    progress.next("raw socket, " + sizeText(bytes));
    return raw_socket::roundTrips({.bytes = bytes,
                                   .answer = answer,
                                   .rounds = roundsOf(bytes),
                                   .spin = spin,
                                   .deadline = challenge.patience});
  };
  for (size_t bytes : challenge.sizes) {
    if (bytes == 0) continue;
    for (bool spin : {true, false}) {
      auto times = measure(bytes, bytes, spin);
      if (!times.ok()) return times.status();
      found.figures.push_back({.section = kLatencySection,
                               .who = "raw socket",
                               .what = spin ? "echo, spinning" : "echo",
                               .path = "loopback",
                               .bytes = bytes,
                               .unit = Unit::nanoseconds,
                               .value = times->p50,
                               .spread = *times});
    }
    auto times = measure(bytes, 1, false);
    if (!times.ok()) return times.status();
    found.figures.push_back({.section = kBandwidthSection,
                             .who = "raw socket",
                             .what = "send, confirmed",
                             .path = "loopback",
                             .bytes = bytes,
                             .unit = Unit::gigabytesPerSecond,
                             .value = static_cast<double>(bytes) / times->p50});
  }
  return Status();
}

}  // namespace hmc::bench
