#pragma once

#include "hmc/result.h"

namespace hmc::ipc {

// Whether an owner can make what a stopped peer has mapped read-only, or why not.
Status mappingReport();

}  // namespace hmc::ipc
