#pragma once

#include "bench/measure.h"

namespace hmc::bench {

// Blocking puts and gets of every size over each of these transports, in turns, and which of them a
// Node takes that may use them all. One that does not open is left out, with a note.
Status measureAllPaths(Session& session, const std::vector<std::string>& transports,
                       const Plan& plan, const Step& step, Run& run);

}  // namespace hmc::bench
