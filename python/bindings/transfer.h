#pragma once

#include <string>

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
// The same for a blocking call, which cancels the transfer before it raises.
void finish(Ticket& ticket, Timeout timeout, const std::string& what);

// Calls `attempt(timeout)` with short timeouts until it returns something other than `late`, or
// until the time is over. In between, Ctrl-C raises KeyboardInterrupt.
template <class Attempt>
auto inShortWaits(Timeout timeout, Code late, Attempt attempt) {
  constexpr Timeout kWhile = std::chrono::milliseconds(100);
  const Deadline deadline(timeout);
  for (;;) {
    auto outcome = withoutGil([&] { return attempt(std::min(kWhile, deadline.left())); });
    if (outcome.ok() || outcome.status().code() != late || deadline.passed()) return outcome;
    if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
  }
}

}  // namespace hmc::python
