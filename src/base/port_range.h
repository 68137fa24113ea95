#pragma once

#include <cstdint>
#include <string>

#include "hmc/result.h"

namespace hmc {

// Ports to choose from; the one from 0 to 0 leaves the choice to the kernel.
struct PortRange {
  uint16_t first = 0;
  uint16_t last = 0;
};

// What "20000-20015", "20000" or "" means.
Result<PortRange> portRangeFrom(const std::string& text);

}  // namespace hmc
