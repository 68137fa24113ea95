#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "bench/report/progress.h"
#include "bench/run.h"
#include "hmc/status.h"

// Other software that moves bytes between processes, measured in the same run and the same units.
// None is required: a note names what is missing and the command that installs it.
namespace hmc::bench {

struct Comparison {
  std::vector<Measurement> measurements;
  std::vector<std::string> notes;
};

// What every competitor measures.
struct Workload {
  std::vector<size_t> sizes;
  // Of one run of one program.
  std::chrono::milliseconds timeout = std::chrono::seconds(60);
};

struct Competitor {
  std::string name;  // as the command line says it: "ucx"
  std::string what;  // for the help: "UCX's ucx_perftest"
  // Adds its measurements. An error when there is none at all.
  Status (*run)(const Workload& workload, Progress& progress, Comparison& found);
};

const std::vector<Competitor>& allCompetitors();

// Those that are wanted; all when the list is empty. An unknown name becomes a note.
Comparison runCompetitors(const std::vector<std::string>& wanted, const Workload& workload,
                          Progress& progress);

Status runUcx(const Workload& workload, Progress& progress, Comparison& found);
Status runMpi(const Workload& workload, Progress& progress, Comparison& found);
Status runVerbs(const Workload& workload, Progress& progress, Comparison& found);
Status runSocket(const Workload& workload, Progress& progress, Comparison& found);

}  // namespace hmc::bench
