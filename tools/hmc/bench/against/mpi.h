#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/run.h"

namespace hmc::bench {

// The measurements in the output of mpi_window.c; other lines are skipped.
std::vector<Measurement> parseMpi(const std::string& printed, const std::string& who);

// "4.1.4" from what `mpirun --version` prints; nothing when that is another MPI.
std::optional<std::string> parseOpenMpiVersion(const std::string& printed);

}  // namespace hmc::bench
