#pragma once

#include <string>

#include "bench/run.h"

namespace hmc::bench {

// Run::paths as a table: a column for each transport, which one is taken, and whether it should be.
std::string pathsText(const Run& run, bool colour);

// "best", or how much better another one is.
std::string verdictText(const PathRow& row);

}  // namespace hmc::bench
