#pragma once

#include <string>

#include "regions.h"

namespace hmc::python {

// The class behind hmc.Transfer. Both sides go after the ticket, so that letting a ticket go never
// waits.
struct Transfer {
  Handle<RemoteRegion> remote;
  Handle<LocalRegion> local;
  Ticket ticket;
};

// Waits without the GIL, and looks for Ctrl-C now and then: raises KeyboardInterrupt.
Status waitFor(Ticket& ticket, Timeout timeout);
// The same for a call that does not leave the transfer going: cancels it before it raises.
void finish(Ticket& ticket, Timeout timeout, const std::string& what);

// Calls `attempt(timeout)` for short whiles until it answers something else than `late`, or the
// time is over. For waits that end by themselves when Ctrl-C is pressed.
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
