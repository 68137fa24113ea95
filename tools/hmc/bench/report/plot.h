#pragma once

#include <string>

#include "bench/figure.h"
#include "hmc/status.h"

// A Run as a drawing: latency and bandwidth over size, each line beside its ceiling.
namespace hmc::bench {

std::string plotText(const Run& run);  // SVG
// PNG where the file is called so, else SVG.
Status writePlot(const Run& run, const std::string& path);

}  // namespace hmc::bench
