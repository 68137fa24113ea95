#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/fd.h"
#include "hmc/deadline.h"
#include "transport/ucx/worker.h"

namespace hmc::ucx {

class Outgoing;

// The worker over which the operations of all links go, and what moves it: the thread that calls
// Transport::progress(), and whoever destroys a link.
class Origin {
 public:
  using Clock = Deadline::Clock;

  // Must not outlive `context`.
  static Result<std::unique_ptr<Origin>> create(Context& context);

  // One thread at a time. True when an operation ended since the last call.
  bool run(Deadline until);
  // Drives this one to its end.
  void finish(Outgoing& outgoing);
  // Lets run() look again, and return.
  void wake();

 private:
  friend class Outgoing;

  Origin(std::unique_ptr<Worker> worker, Fd wake)
      : wake_(std::move(wake)), worker_(std::move(worker)) {}
  bool sleep(Deadline until);
  void tend();

  const Fd wake_;
  // Guards everything below, and every Outgoing. Held for a few calls of UCX at a time.
  std::mutex mutex_;
  const std::unique_ptr<Worker> worker_;
  std::vector<Outgoing*> all_;
  uint64_t ended_ = 0;         // operations
  uint64_t reported_ = 0;      // how many of them when run() last said so
  bool sleeping_ = false;      // run() waits for an event
  bool needsTending_ = false;  // one of all_ is closing
};

}  // namespace hmc::ucx
