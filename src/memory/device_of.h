#pragma once

#include "hmc/result.h"
#include "memory/region.h"

namespace hmc {

// Which device a pointer of unknown origin lies on. Loads the backends of kinds whose vendor's
// library is in this process already: without it nobody can have such a pointer. A pointer that
// none of them knows and that the processor cannot read, either, is an error, never host memory.
Result<Device> deviceOf(const void* ptr);

}  // namespace hmc
