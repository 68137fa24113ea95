#include <fmt/core.h>

#include "bench/against/competitors.h"
#include "bench/against/perftest.h"
#include "bench/report/units.h"
#include "try.h"

namespace hmc::bench {

namespace {

Status addBandwidth(const RdmaAddress& address, const char* program, const char* what, size_t bytes,
                    const Workload& workload, Comparison& found) {
  TOOL_ASSIGN(const double each,
              perftestPerMessage(
                  address, {.program = program, .bytes = bytes, .timeout = workload.timeout}));
  Measurement measurement{.section = kBandwidthSection,
                          .who = "perftest",
                          .what = what,
                          .path = address.device,
                          .bytes = bytes,
                          .unit = Unit::gigabytesPerSecond};
  measurement.value = static_cast<double>(bytes) / each;
  found.measurements.push_back(measurement);
  return Status();
}

Status addLatency(const RdmaAddress& address, size_t bytes, const Workload& workload,
                  Comparison& found) {
  TOOL_ASSIGN(const Percentiles times, perftestLatency(address, {.program = kWriteLatency,
                                                                 .bytes = bytes,
                                                                 .timeout = workload.timeout}));
  Measurement measurement{.section = kLatencySection,
                          .who = "perftest",
                          .what = "RDMA write, half a ping-pong",
                          .path = address.device,
                          .bytes = bytes};
  measurement.value = times.p50;
  measurement.spread = times;
  found.measurements.push_back(measurement);
  return Status();
}

Status addSize(const RdmaAddress& address, size_t bytes, const Workload& workload,
               Comparison& found) {
  TOOL_TRY(addLatency(address, bytes, workload, found));
  TOOL_TRY(addBandwidth(address, kWriteBandwidth, "RDMA write", bytes, workload, found));
  return addBandwidth(address, kReadBandwidth, "RDMA read", bytes, workload, found);
}

}  // namespace

Status runVerbs(const Workload& workload, Progress& progress, Comparison& found) {
  TOOL_TRY(findPerftest());
  TOOL_ASSIGN(const RdmaAddress address, findRdmaAddress());
  progress.expect(workload.sizes.size());
  for (size_t bytes : workload.sizes) {
    progress.next(fmt::format("perftest, {}, {}", address.device, sizeText(bytes)));
    if (bytes == 0) continue;
    Status status = addSize(address, bytes, workload, found);
    if (!status.ok()) return status.within(sizeText(bytes));
  }
  return Status();
}

}  // namespace hmc::bench
