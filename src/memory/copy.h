#pragma once

#include <chrono>

#include "hmc/deadline.h"
#include "memory/backend.h"

namespace hmc {

// How long a copy on a device may take before it counts as stuck.
inline constexpr std::chrono::seconds kCopyTimeout{60};

// Copies src into the start of dst, whatever the two devices are: within one kind, to or from the
// host, or between two vendors through pinned host memory. Finished when it returns. dst.size must
// be at least src.size. Overlap is allowed on the host only. After deadlineExceeded a device may
// still be at it. Where nothing may block, take memory/pending_copy.h.
Status copy(const Region& dst, const Region& src, std::chrono::milliseconds timeout = kCopyTimeout);

// As copy(), but the two may overlap on any device, as memmove(3) allows.
Status move(const Region& dst, const Region& src, std::chrono::milliseconds timeout = kCopyTimeout);

// How a thread that polls a device passes the time: not at all, then letting others run, then in
// naps. Nothing would wake it: vendors' calls that do, block without a deadline.
class PollPause {
 public:
  // Between two looks. deadlineExceeded when the time is over.
  Status next(Deadline deadline);
  // There was something new.
  void restart() { looks_ = 0; }

 private:
  int looks_ = 0;
};

class PendingCopy;

// Polls until it has passed. deadlineExceeded leaves the device at work.
Status waitFor(DeviceEvent& event, Deadline deadline);
Status waitFor(PendingCopy& copy, Deadline deadline);

}  // namespace hmc
