#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "bench/figure.h"
#include "bench/report/progress.h"
#include "hmc/status.h"

// Others who move bytes between processes, measured in the same run and the same units. None is
// required: who is not installed is named in a note with the command that installs it.
namespace hmc::bench {

struct Comparison {
  std::vector<Figure> figures;
  std::vector<std::string> notes;
};

// What every rival is asked for.
struct Challenge {
  std::vector<size_t> sizes;
  // For one run of one program.
  std::chrono::milliseconds patience = std::chrono::seconds(60);
};

struct Rival {
  std::string name;  // as the command line says it: "ucx"
  std::string what;  // for the help: "UCX's ucx_perftest"
  // Adds its figures. An error when there are none at all: missing, or broken from the start.
  Status (*run)(const Challenge& challenge, Progress& progress, Comparison& found);
};

const std::vector<Rival>& allRivals();

// Those of the wanted names; all when there are none. An unknown name is a note.
Comparison runRivals(const std::vector<std::string>& wanted, const Challenge& challenge,
                     Progress& progress);

Status runUcx(const Challenge& challenge, Progress& progress, Comparison& found);
Status runMpi(const Challenge& challenge, Progress& progress, Comparison& found);
Status runVerbs(const Challenge& challenge, Progress& progress, Comparison& found);
Status runSocket(const Challenge& challenge, Progress& progress, Comparison& found);

}  // namespace hmc::bench
