#include "bench/against/competitors.h"

#include <algorithm>
#include <filesystem>

#include <fmt/core.h>

namespace hmc::bench {

void Comparison::addLatency(Measurement about, double each, std::optional<Percentiles> spread) {
  about.section = kLatencySection;
  about.value = each;
  about.spread = spread;
  measurements.push_back(std::move(about));
}

void Comparison::addBandwidth(Measurement about, double each) {
  about.section = kBandwidthSection;
  about.unit = Unit::gigabytesPerSecond;
  about.value = static_cast<double>(about.bytes) / each;
  measurements.push_back(std::move(about));
}

const std::vector<Competitor>& allCompetitors() {
  static const std::vector<Competitor> kCompetitors{
      {"ucx", "UCX, through its ucx_perftest", runUcx},
      {"mpi", "windows of Open MPI", runMpi},
      {"verbs", "RDMA writes and reads, through perftest", runVerbs},
      {"socket", "bare TCP sockets over loopback", runSocket},
      {"nixl", "NIXL, through its Python package, in memory of GPUs, too", runNixl, true},
  };
  return kCompetitors;
}

Comparison runCompetitors(const std::vector<std::string>& wanted, const Workload& workload,
                          Progress& progress) {
  Comparison found;
  auto isWanted = [&](const std::string& name) {
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end();
  };
  std::string names;
  for (const auto& competitor : allCompetitors()) {
    names += (names.empty() ? "" : ", ") + competitor.name;
    if (!isWanted(competitor.name)) continue;
    Status status = workload.inHostMemory() || competitor.anyMemory
                        ? competitor.run(workload, progress, found)
                        : Status(Code::unsupported, "not measured: it is for host memory here");
    if (!status.ok())
      found.notes.push_back(fmt::format("{}: {}", competitor.name, status.message()));
  }
  for (const auto& name : wanted) {
    const bool known =
        std::any_of(allCompetitors().begin(), allCompetitors().end(),
                    [&](const Competitor& competitor) { return competitor.name == name; });
    if (!known) found.notes.push_back(fmt::format("{}: not one of {}", name, names));
  }
  return found;
}

}  // namespace hmc::bench
