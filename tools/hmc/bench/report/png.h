#pragma once

#include <string>

#include "hmc/status.h"

namespace hmc::bench {

bool isPng(const std::string& path);

// Whether a program is installed that turns SVG into PNG; else a sentence that names the packages.
Status canWritePng();

Status writePng(const std::string& svg, const std::string& path);

}  // namespace hmc::bench
