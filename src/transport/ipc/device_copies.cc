#include "transport/ipc/device_copies.h"

#include <algorithm>

#include "base/error.h"
#include "base/futex.h"
#include "transport/check.h"

namespace hmc::ipc {

namespace {
constexpr std::chrono::microseconds kPollEvery{50};
}  // namespace

void DeviceCopies::start(const Link& link, const Op& op, const Region& far,
                         std::shared_ptr<void> mapping) {
  const auto& gate = op.remote->sharedGate();
  if (!gate->enter()) return op.completion->fail(memoryRevoked());
  const Region near{op.local, op.size, op.registration->region.device};
  auto pending =
      op.kind == OpKind::put ? PendingCopy::start(far, near) : PendingCopy::start(near, far);
  if (!pending.ok()) {
    gate->leave();
    return op.completion->fail(pending.status());
  }
  std::lock_guard lock(mutex_);
  copies_.push_back(
      {&link, op.completion, gate, std::move(mapping), *std::move(pending), Status()});
  count_.store(copies_.size(), std::memory_order_release);
}

bool DeviceCopies::poll() {
  if (idle()) return false;
  std::lock_guard lock(mutex_);
  return pollLocked();
}

// First the gate: the memory may be gone as soon as the operation is done.
void DeviceCopies::end(const Copy& copy, const Status& status) {
  copy.gate->leave();
  copy.completion->end(status);
}

bool DeviceCopies::pollLocked() {
  const size_t erased = std::erase_if(copies_, [](const Copy& copy) {
    auto passed = copy.pending->passed();
    if (passed.ok() && !*passed) return false;
    end(copy, copy.closed.ok() ? passed.status() : copy.closed);
    return true;
  });
  count_.store(copies_.size(), std::memory_order_release);
  return erased > 0;
}

void DeviceCopies::close(const Link& link, const Status& why) {
  std::lock_guard lock(mutex_);
  for (Copy& copy : copies_) {
    if (copy.link == &link && copy.closed.ok()) copy.closed = why;
  }
}

bool DeviceCopies::has(const Link& link) {
  std::lock_guard lock(mutex_);
  pollLocked();
  return std::any_of(copies_.begin(), copies_.end(),
                     [&](const Copy& copy) { return copy.link == &link; });
}

void DeviceCopies::drain(const Link& link, Deadline deadline) {
  const std::atomic<uint32_t> never{0};
  while (has(link) && !deadline.passed()) futexWait(never, 0, earlier(deadline, kPollEvery));
  std::lock_guard lock(mutex_);
  std::erase_if(copies_, [&](const Copy& copy) {
    if (copy.link != &link) return false;
    end(copy, error(Code::deadlineExceeded, "a device did not finish a copy in time"));
    return true;
  });
  count_.store(copies_.size(), std::memory_order_release);
}

}  // namespace hmc::ipc
