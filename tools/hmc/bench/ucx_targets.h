#pragma once

#include "bench/measure.h"

namespace hmc::bench {

inline constexpr size_t kUcxTargetSteps = 5;

// The promises for UCX, beside bare calls of it in the same run. Where the headers of UCX were
// missing a note says so instead.
Status measureUcxTargets(Session& session, const Plan& plan, const Step& step, Run& run);

}  // namespace hmc::bench
