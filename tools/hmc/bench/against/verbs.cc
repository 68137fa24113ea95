#include <fmt/core.h>

#include "bench/against/perftest.h"
#include "bench/against/rivals.h"
#include "bench/report/units.h"
#include "try.h"

namespace hmc::bench {

namespace {

Status addBandwidth(const RdmaAddress& address, const char* program, const char* what, size_t bytes,
                    const Challenge& challenge, Comparison& found) {
  TOOL_ASSIGN(const double each,
              perftestPerMessage(
                  address, {.program = program, .bytes = bytes, .patience = challenge.patience}));
  Figure figure{.section = kBandwidthSection,
                .who = "perftest",
                .what = what,
                .path = address.device,
                .bytes = bytes,
                .unit = Unit::gigabytesPerSecond};
  figure.value = static_cast<double>(bytes) / each;
  found.figures.push_back(figure);
  return Status();
}

Status addLatency(const RdmaAddress& address, size_t bytes, const Challenge& challenge,
                  Comparison& found) {
  TOOL_ASSIGN(const Percentiles times, perftestLatency(address, {.program = kWriteLatency,
                                                                 .bytes = bytes,
                                                                 .patience = challenge.patience}));
  Figure figure{.section = kLatencySection,
                .who = "perftest",
                .what = "RDMA write, half a ping-pong",
                .path = address.device,
                .bytes = bytes};
  figure.value = times.p50;
  figure.spread = times;
  found.figures.push_back(figure);
  return Status();
}

Status addSize(const RdmaAddress& address, size_t bytes, const Challenge& challenge,
               Comparison& found) {
  TOOL_TRY(addLatency(address, bytes, challenge, found));
  TOOL_TRY(addBandwidth(address, kWriteBandwidth, "RDMA write", bytes, challenge, found));
  return addBandwidth(address, kReadBandwidth, "RDMA read", bytes, challenge, found);
}

}  // namespace

Status runVerbs(const Challenge& challenge, Progress& progress, Comparison& found) {
  TOOL_TRY(findPerftest());
  TOOL_ASSIGN(const RdmaAddress address, findRdmaAddress());
  progress.expect(challenge.sizes.size());
  for (size_t bytes : challenge.sizes) {
    progress.next(fmt::format("perftest, {}, {}", address.device, sizeText(bytes)));
    if (bytes == 0) continue;
    Status status = addSize(address, bytes, challenge, found);
    if (!status.ok()) return status.within(sizeText(bytes));
  }
  return Status();
}

}  // namespace hmc::bench
