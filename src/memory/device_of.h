#pragma once

#include "hmc/result.h"
#include "memory/region.h"

namespace hmc {

// Which device a pointer of unknown origin lies on. Loads the backends of kinds whose vendor's
// library is in this process already: without it nobody can have such a pointer. A pointer that
// none of them knows and that the processor cannot read, either, is an error, never host memory.
Result<Device> deviceOf(const void* ptr);

// The same for a pointer that its caller would read or write anyway: what no accelerator knows is
// taken for host memory. Costs little where no accelerator's library is in the process.
Result<Device> deviceOrHost(const void* ptr);
bool isOnHost(const void* ptr);

}  // namespace hmc
