#pragma once

#include <cstdlib>

namespace hmc::tool {

// For a command whose table tells what is wrong: a line of the log would lie in the middle of it.
// What the user asks for with HMC_LOG comes all the same. To be called before anything logs.
inline void keepLogToErrors() {
  setenv("HMC_LOG", "error", 0);
}

}  // namespace hmc::tool
