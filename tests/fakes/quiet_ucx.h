#pragma once

#include <cstdlib>

namespace hmc::test {

// UCX puts hooks around the memory functions of the C library. One of them runs in a thread's last
// moments, when ThreadSanitizer has let go of the thread already, and crashes there. To be called
// before UCX is loaded.
inline bool keepUcxFromHookingMemory() {
#if defined(__SANITIZE_THREAD__)
  setenv("UCX_MEM_EVENTS", "n", 1);
#endif
  return true;
}

}  // namespace hmc::test
