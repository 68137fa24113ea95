#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "bench/report/progress.h"
#include "bench/run.h"
#include "hmc/device.h"
#include "hmc/result.h"

// Other software that moves bytes between processes, measured in the same run and the same units.
// None is required: a note names what is missing and the command that installs it.
namespace hmc::bench {

struct Comparison {
  std::vector<Measurement> measurements;
  std::vector<std::string> notes;

  // `about` says who, what, path and bytes; `each` is nanoseconds per operation.
  void addLatency(Measurement about, double each, std::optional<Percentiles> spread = {});
  void addBandwidth(Measurement about, double each);
};

// What every competitor measures.
struct Workload {
  std::vector<size_t> sizes;
  // Of one run of one program.
  std::chrono::milliseconds timeout = std::chrono::seconds(60);
  // Where the memory of the two sides lies.
  Device here{};
  Device there{};

  bool inHostMemory() const { return here.isHost() && there.isHost(); }
};

struct Competitor {
  std::string name;  // as the command line says it: "ucx"
  std::string what;  // for the help: "UCX's ucx_perftest"
  // Adds its measurements. An error when there is none at all.
  Status (*run)(const Workload& workload, Progress& progress, Comparison& found);
  bool anyMemory = false;  // of devices, too
};

const std::vector<Competitor>& allCompetitors();

// Those that are wanted; all when the list is empty. An unknown name becomes a note.
Comparison runCompetitors(const std::vector<std::string>& wanted, const Workload& workload,
                          Progress& progress);

Status runUcx(const Workload& workload, Progress& progress, Comparison& found);
Status runMpi(const Workload& workload, Progress& progress, Comparison& found);
Status runVerbs(const Workload& workload, Progress& progress, Comparison& found);
Status runSocket(const Workload& workload, Progress& progress, Comparison& found);
Status runNixl(const Workload& workload, Progress& progress, Comparison& found);

// What one run of ucx_perftest found out about one message, in nanoseconds.
struct UcxAnswer {
  double median = 0;
  double mean = 0;  // of the whole run, waiting included
};
// From the text that `ucx_perftest -f -v` prints: a line of column names, a line of numbers, and
// perhaps warnings around them.
Result<UcxAnswer> parseUcx(const std::string& printed);
// "1.13.1" from what `ucx_info -v` prints; empty when it is not there.
std::string parseUcxVersion(const std::string& printed);
// Nanoseconds that ucx_perftest takes per message of that size over tcp, streamed.
Result<double> ucxTcpSend(size_t bytes, std::chrono::milliseconds timeout);

// The measurements in the output of mpi_window.c; other lines are skipped.
Comparison parseMpi(const std::string& printed, const std::string& who);
// The same of nixl_agents.py.
Comparison parseNixl(const std::string& printed, const std::string& who);

}  // namespace hmc::bench
