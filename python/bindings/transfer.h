#pragma once

#include <string>

#include "errors.h"
#include "regions.h"

namespace hmc::python {

// The class behind hmc.Transfer. Members are destroyed in reverse order: while the ticket goes,
// both regions are still there, so it never waits.
struct Transfer {
  Handle<RemoteRegion> remote;
  Handle<LocalRegion> local;
  Ticket ticket;
};

// Waits without the GIL. Checks for Ctrl-C now and then, which raises KeyboardInterrupt.
Status waitFor(Ticket& ticket, Timeout timeout);
// The same for a blocking call: a transfer that is late is cancelled before this returns.
Status waitOrCancel(Ticket& ticket, Timeout timeout);

// Waits, and raises the transfer's error. what() names the transfer if it was late.
template <class Name>
void finish(Ticket& ticket, Timeout timeout, Name what) {
  const Status status = waitOrCancel(ticket, timeout);
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
