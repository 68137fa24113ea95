#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "base/event_set.h"
#include "hmc/deadline.h"
#include "transport/ucx/worker.h"

namespace hmc::ucx {

class UcxLink;

// What moves our own operations: the thread in Transport::progress() drives the paths of all links
// that have something to do.
class Progress {
 public:
  using Clock = Deadline::Clock;

  // Must not outlive `context` and `draining`.
  static Result<std::unique_ptr<Progress>> create(Context& context, Draining& draining);

  // One thread at a time. True when an operation ended since the last call.
  bool run(Deadline until);
  // Lets run() return, or the next one if there is none.
  void wake();

 private:
  friend class UcxLink;

  Progress(Context& context, Draining& draining, EventSet events)
      : context_(context), draining_(draining), events_(std::move(events)) {}
  bool await(Deadline until);

  // With mutex_ held.
  bool pollBurst();
  void startPolling(UcxLink& link);
  void wakeIfAsleep();
  void reconcile();

  Context& context_;
  Draining& draining_;
  EventSet events_;
  // Guards everything below, and every UcxLink. Held for a few calls of UCX at a time.
  std::mutex mutex_;
  std::condition_variable changed_;  // an UcxLink has ended
  std::vector<UcxLink*> all_;
  std::vector<UcxLink*> polled_;  // the others are armed, and announce what they have to do
  uint64_t ended_ = 0;            // operations
  uint64_t reported_ = 0;         // how many of them when run() last said so
  bool sleeping_ = false;         // run() waits for an event
  bool wanted_ = false;           // run() shall return
  bool needsReconcile_ = false;   // one of all_ recovers or closes
};

}  // namespace hmc::ucx
