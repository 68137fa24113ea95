#pragma once

#include <string>
#include <vector>

#include "errors.h"
#include "regions.h"

namespace hmc::python {

// One ticket of a Transfer. Members are destroyed in reverse order: while the ticket goes, both
// regions are still there, so it never waits.
struct TransferPart {
  Handle<RemoteRegion> remote;
  Handle<LocalRegion> local;
  Ticket ticket;
};

// The class behind hmc.Transfer.
struct Transfer {
  std::vector<TransferPart> parts;
  std::vector<Handle<RemoteRegion>> atOnce;  // other regions, reached by copies that are done
  Status failure;                            // of a part that could not be started

  bool over() const;
  bool done();  // needs no GIL
  Status cancel();
  // Of each region that it reaches.
  std::string path() const;
};

// Waits without the GIL until nothing of it is under way; the first failure, if there is one.
// Checks for Ctrl-C now and then, which raises KeyboardInterrupt.
Status waitFor(Transfer& transfer, Timeout timeout);
// The same for a blocking call: a transfer that is late is cancelled before this returns.
Status waitOrCancel(Transfer& transfer, Timeout timeout);

// Waits, and raises the transfer's error. what() names the transfer if it was late.
template <class Name>
void finish(Transfer& transfer, Timeout timeout, Name what) {
  const Status status = waitOrCancel(transfer, timeout);
  check(status.code() == Code::deadlineExceeded ? status.within(what()) : status);
}

// Calls `attempt(timeout)` with short timeouts until it returns something other than `late`, or
// until the time is over. In between, Ctrl-C raises KeyboardInterrupt.
template <class Attempt>
auto inShortWaits(Timeout timeout, Code late, Attempt attempt) {
  constexpr std::chrono::nanoseconds kWhile = std::chrono::milliseconds(100);
  const Deadline deadline(timeout);
  for (;;) {
    auto outcome = withoutGil([&] { return attempt(std::min(kWhile, deadline.left())); });
    if (outcome.ok() || outcome.status().code() != late || deadline.passed()) return outcome;
    if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
  }
}

}  // namespace hmc::python
