#pragma once

// The manuals name this header, and programs that follow them include it. What is not theirs is
// found as hmc/memory.h.
#include "hmc/memory.h"  // IWYU pragma: export
