#pragma once

#include "bench/measure.h"

namespace hmc::bench {

inline constexpr size_t kVerbsTargetSteps = 6;

// The promises for RDMA, beside the programs of perftest. Where those are not installed a note says
// so instead.
Status measureVerbsTargets(Session& session, const Plan& plan, const Step& step, Run& run);

}  // namespace hmc::bench
