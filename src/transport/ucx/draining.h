#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "hmc/deadline.h"
#include "transport/ucx/path.h"
#include "transport/ucx/target.h"

namespace hmc::ucx {

// Paths and targets that were closed before their hello was answered. UCX 1.13 aborts the process
// that is about to answer on a connection that goes away, so these stay until the answer has come.
// No operation is under way over them. Safe from any thread.
class Draining {
 public:
  void add(std::unique_ptr<Path> path);
  void add(std::unique_ptr<Target> target);
  // Moves them along, and drops those that are settled or have timed out. False when none is left.
  bool step();

 private:
  struct Entry {
    std::unique_ptr<Path> path;
    std::unique_ptr<Target> target;
    Deadline deadline;
    bool done() const;
  };
  std::mutex mutex_;
  std::vector<Entry> all_;  // guarded by mutex_
};

}  // namespace hmc::ucx
