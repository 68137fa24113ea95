#include "memory/copy.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <thread>

#include "base/error.h"
#include "base/futex.h"
#include "memory/backends.h"
#include "memory/host_copy.h"
#include "memory/pending_copy.h"

namespace hmc {

namespace {

// Overlapping pieces closer than this go through the host: copies on the device would be too many.
constexpr size_t kShortestStep = size_t{64} << 10;
constexpr int kSpins = 200;
constexpr int kYields = 200;
constexpr std::chrono::microseconds kPollEvery{50};

template <class Pending>
Status poll(Pending& pending, Deadline deadline) {
  for (PollPause pause;;) {
    HMC_ASSIGN(const bool passed, pending.passed());
    if (passed) return Status();
    HMC_TRY(pause.next(deadline));
  }
}

bool overlap(const Region& dst, const Region& src) {
  std::less<const char*> before;
  return dst.device.kind == src.device.kind && before(dst.at(0), src.at(src.size)) &&
         before(src.at(0), dst.at(src.size));
}

// On the device, in pieces that are no longer than the distance and so do not overlap, in the order
// in which none overwrites what is still to be read.
Status moveInSteps(const Region& dst, const Region& src, size_t step, bool fromTheEnd,
                   Deadline deadline) {
  HMC_ASSIGN(Backend * backend, findBackend(dst.device));
  HMC_ASSIGN(auto event, backend->event(dst.device.index));
  const DeviceQueue queue{dst.device};
  Status status;
  for (size_t done = 0; done < src.size && status.ok(); done += step) {
    const size_t size = std::min(step, src.size - done);
    const size_t at = fromTheEnd ? src.size - done - size : done;
    status = backend->copyAll(dst.slice(at, size), src.slice(at, size), queue);
  }
  // After an error, too: the memory is the caller's again only when nothing runs any more.
  HMC_TRY(event->record(queue));
  Status waited = poll(*event, deadline);
  return status.ok() ? waited : status;
}

}  // namespace

Status PollPause::next(Deadline deadline) {
  if (looks_ < kSpins + kYields) ++looks_;
  if (looks_ < kSpins) return Status();
  if (deadline.passed())
    return error(Code::deadlineExceeded, "a device did not finish its copies in time");
  if (looks_ < kSpins + kYields) {
    std::this_thread::yield();
  } else {
    const std::atomic<uint32_t> never{0};
    futexWait(never, 0, earlier(deadline, kPollEvery));
  }
  return Status();
}

Status waitFor(DeviceEvent& event, Deadline deadline) {
  return poll(event, deadline);
}

Status waitFor(PendingCopy& copy, Deadline deadline) {
  return poll(copy, deadline);
}

Status copy(const Region& dst, const Region& src, std::chrono::milliseconds timeout) {
  const bool onHost = dst.device.isHost() && src.device.isHost();
  if (onHost && dst.ptr && src.ptr && dst.size >= src.size) {
    moveHost(dst.ptr, src.ptr, src.size);
    return Status();
  }
  HMC_ASSIGN(auto pending, PendingCopy::start(dst, src));
  return poll(*pending, timeout);
}

Status move(const Region& dst, const Region& src, std::chrono::milliseconds timeout) {
  const bool sane = dst.size >= src.size && dst.ptr && src.ptr;
  if (sane && dst.ptr == src.ptr && dst.device == src.device) return Status();
  // copy() says what is wrong where something is.
  if (!sane || dst.device.isHost() || !overlap(dst, src)) return copy(dst, src, timeout);
  const bool fromTheEnd = std::less<const char*>()(src.at(0), dst.at(0));
  const auto distance = static_cast<size_t>(std::abs(dst.at(0) - src.at(0)));
  if (distance >= kShortestStep) return moveInSteps(dst, src, distance, fromTheEnd, timeout);
  HMC_ASSIGN(auto pending, PendingCopy::startStaged(dst, src, fromTheEnd));
  return poll(*pending, timeout);
}

}  // namespace hmc
