#pragma once

#include <vector>

#include "doctor/finding.h"
#include "hmc/status.h"

namespace hmc::tool {

// Why no Node could be made, with a fix that fits the reason.
Finding judgeNode(const Status& made);

// Does the library work on this host alone: can a Node open a listener, and does a put to another
// process arrive over each transport that can run here? Works only in the hmc program, which it
// starts again as the other process.
std::vector<Finding> checkLoopback();

}  // namespace hmc::tool
