#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/run.h"

namespace hmc::bench {

// The measurements in what mpi_window.c printed; other lines are passed over.
std::vector<Measurement> parseMpi(const std::string& printed, const std::string& who);

// "4.1.4" from what `mpirun --version` prints; nothing when that is another MPI.
std::optional<std::string> parseOpenMpiVersion(const std::string& printed);

}  // namespace hmc::bench
