#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "hmc/deadline.h"
#include "transport/ucx/path.h"
#include "transport/ucx/target.h"

namespace hmc::ucx {

// What was given up before the hello between the two sides was over. UCX 1.13 ends the process in
// which it is about to answer a connection that goes, and so these wait for the answer; no
// operation is under way over them. Safe from any thread.
class Partings {
 public:
  void add(std::unique_ptr<Path> path);
  void add(std::unique_ptr<Target> target);
  // Moves them along, and drops those that are settled or have waited for long enough. False when
  // none is left.
  bool step();

 private:
  struct Parting {
    std::unique_ptr<Path> path;
    std::unique_ptr<Target> target;
    Deadline deadline;
    bool over() const;
  };
  std::mutex mutex_;
  std::vector<Parting> all_;  // guarded by mutex_
};

}  // namespace hmc::ucx
