#pragma once

#include <cstdlib>

namespace hmc::tool {

// For commands whose table already says what is wrong: log lines would interrupt it. HMC_LOG still
// decides where it is set. Call this before anything logs.
inline void keepLogToErrors() {
  setenv("HMC_LOG", "error", 0);
}

}  // namespace hmc::tool
