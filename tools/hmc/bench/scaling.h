#pragma once

#include "bench/measure.h"

namespace hmc::bench {

// What idle peers cost, what a put costs among many peers and regions, and how puts scale with
// threads.
Status measureScaling(Session& session, const Plan& plan, const Step& step, Run& run);

}  // namespace hmc::bench
