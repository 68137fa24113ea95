#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace hmc::tool {

// What `hmc pool run` starts.
struct RankOptions {
  std::vector<std::string> words;  // the program first
  uint32_t count = 0;
  std::string store;
  bool tag = false;                       // put the rank in front of each line
  std::chrono::milliseconds grace{5000};  // between SIGTERM and SIGKILL
};

// Starts them and returns when all have ended: 0, or the status of the first that failed (128 +
// signal for one that a signal ended), after it has ended the others. SIGINT, SIGTERM and SIGHUP
// are passed on, and the status is then 128 + signal. For the program's first thread: the kernel
// ends the ranks with the thread that started them.
int runRanks(const RankOptions& options);

}  // namespace hmc::tool
