#pragma once

#include <unistd.h>

#include <cstddef>
#include <fstream>

namespace hmc::test {

// How much memory this process has taken.
inline size_t residentKilobytes() {
  std::ifstream file("/proc/self/statm");
  size_t total = 0;
  size_t resident = 0;
  file >> total >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE)) / 1024;
}

}  // namespace hmc::test
