#include "bench/against/rivals.h"

#include <algorithm>

#include <fmt/core.h>

namespace hmc::bench {

const std::vector<Rival>& allRivals() {
  static const std::vector<Rival> kRivals{
      {"ucx", "UCX, through its ucx_perftest", runUcx},
      {"mpi", "windows of Open MPI", runMpi},
      {"verbs", "RDMA writes and reads, through perftest", runVerbs},
      {"socket", "bare TCP sockets over loopback", runSocket},
  };
  return kRivals;
}

Comparison runRivals(const std::vector<std::string>& wanted, const Challenge& challenge,
                     Progress& progress) {
  Comparison found;
  auto isWanted = [&](const std::string& name) {
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end();
  };
  std::string names;
  for (const auto& rival : allRivals()) {
    names += (names.empty() ? "" : ", ") + rival.name;
    if (!isWanted(rival.name)) continue;
    Status status = rival.run(challenge, progress, found);
    if (!status.ok()) found.notes.push_back(fmt::format("{}: {}", rival.name, status.message()));
  }
  for (const auto& name : wanted) {
    const bool known = std::any_of(allRivals().begin(), allRivals().end(),
                                   [&](const Rival& rival) { return rival.name == name; });
    if (!known) found.notes.push_back(fmt::format("{}: not one of {}", name, names));
  }
  return found;
}

}  // namespace hmc::bench
