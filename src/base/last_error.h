#pragma once

#include "hmc/status.h"

namespace hmc {

// What lastError() and lastStatus() answer on this thread from now on. Only the facades in api/
// call it.
void setLastStatus(Status status);

}  // namespace hmc
