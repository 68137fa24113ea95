#pragma once

// The manuals name this header, and programs that follow them include it. What is not theirs is
// found as hmc/status.h.
#include "hmc/status.h"  // IWYU pragma: export
