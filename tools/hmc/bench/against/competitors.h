#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "bench/report/progress.h"
#include "bench/run.h"
#include "hmc/status.h"

// Others who move bytes between processes, measured in the same run and the same units. None is
// required: who is not installed is named in a note with the command that installs it.
namespace hmc::bench {

struct Comparison {
  std::vector<Measurement> measurements;
  std::vector<std::string> notes;
};

// What every competitor is asked for.
struct Workload {
  std::vector<size_t> sizes;
  // For one run of one program.
  std::chrono::milliseconds timeout = std::chrono::seconds(60);
};

struct Competitor {
  std::string name;  // as the command line says it: "ucx"
  std::string what;  // for the help: "UCX's ucx_perftest"
  // Adds its measurements. An error when there are none at all: missing, or broken from the start.
  Status (*run)(const Workload& workload, Progress& progress, Comparison& found);
};

const std::vector<Competitor>& allCompetitors();

// Those of the wanted names; all when there are none. An unknown name is a note.
Comparison runCompetitors(const std::vector<std::string>& wanted, const Workload& workload,
                          Progress& progress);

Status runUcx(const Workload& workload, Progress& progress, Comparison& found);
Status runMpi(const Workload& workload, Progress& progress, Comparison& found);
Status runVerbs(const Workload& workload, Progress& progress, Comparison& found);
Status runSocket(const Workload& workload, Progress& progress, Comparison& found);

}  // namespace hmc::bench
