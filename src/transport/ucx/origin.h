#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "base/fd.h"
#include "hmc/deadline.h"
#include "transport/ucx/partings.h"

namespace hmc::ucx {

class Outgoing;

// What moves our own operations: the thread that calls Transport::progress() drives the paths of
// all links that have something to do.
class Origin {
 public:
  using Clock = Deadline::Clock;

  // Must not outlive `context` and `partings`.
  static Result<std::unique_ptr<Origin>> create(Context& context, Partings& partings);

  // One thread at a time. True when an operation ended since the last call.
  bool run(Deadline until);
  // Lets run() return, or the next one if there is none.
  void wake();

 private:
  friend class Outgoing;

  Origin(Context& context, Partings& partings, Fd epoll, Fd wake)
      : context_(context), partings_(partings), epoll_(std::move(epoll)), wake_(std::move(wake)) {}
  bool await(Deadline until);

  // With mutex_ held.
  bool lookBurst();
  bool arm();
  void rouse(Outgoing& outgoing);
  void wakeIfAsleep();
  void tend();

  Context& context_;
  Partings& partings_;
  const Fd epoll_;
  const Fd wake_;
  // Guards everything below, and every Outgoing. Held for a few calls of UCX at a time.
  std::mutex mutex_;
  std::condition_variable changed_;  // an Outgoing is over
  std::vector<Outgoing*> all_;
  std::vector<Outgoing*> awake_;  // to be looked at without being asked
  uint64_t ended_ = 0;            // operations
  uint64_t reported_ = 0;         // how many of them when run() last said so
  bool sleeping_ = false;         // run() waits for an event
  bool wanted_ = false;           // run() shall return
  bool needsTending_ = false;     // one of all_ is closing
};

}  // namespace hmc::ucx
