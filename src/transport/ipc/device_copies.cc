#include "transport/ipc/device_copies.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/futex.h"
#include "transport/check.h"

namespace hmc::ipc {

namespace {

constexpr std::chrono::microseconds kPollEvery{50};

using Started = Result<std::unique_ptr<PendingCopy>>;

Started startBatch(std::span<const Op> ops, const MappedRemote& remote) {
  const Op& first = ops.front();
  const Device near = first.registration->region.device;
  const bool put = first.kind == OpKind::put;
  static thread_local std::vector<CopyPiece> pieces;
  pieces.clear();
  const char* nextNear = nullptr;
  const char* nextFar = nullptr;
  for (const Op& op : ops) {
    char* const far = remote.region.at(op.remoteOffset);
    auto* const local = static_cast<char*>(op.local);
    // Neighbours on both sides are one piece: a long transfer, or blocks that lie together.
    if (local == nextNear && far == nextFar) {
      pieces.back().size += op.size;
    } else {
      pieces.push_back(put ? CopyPiece{far, local, op.size} : CopyPiece{local, far, op.size});
    }
    nextNear = local + op.size;
    nextFar = far + op.size;
  }
  return PendingCopy::startBatch(
      {put ? remote.region.device : near, put ? near : remote.region.device, pieces});
}

Started startStaged(const Op& op, const MappedRemote& remote) {
  const Region near{op.local, op.size, op.registration->region.device};
  const Region far = remote.region.slice(op.remoteOffset, op.size);
  return op.kind == OpKind::put ? PendingCopy::start(far, near) : PendingCopy::start(near, far);
}

}  // namespace

void DeviceCopies::start(const Link& link, std::span<const Op> ops, const MappedRemote& remote) {
  const Op& first = ops.front();
  const Device near = first.registration->region.device;
  const Device far = remote.region.device;
  // One after the other through the host where two vendors meet.
  const bool oneKind = near.isHost() || far.isHost() || near.kind == far.kind;
  const auto operations = static_cast<uint32_t>(oneKind ? ops.size() : 1);
  const auto& gate = remote.sharedGate();
  if (!gate->enter()) return first.completion->fail(memoryRevoked(), operations);
  auto pending = oneKind ? startBatch(ops, remote) : startStaged(first, remote);
  if (!pending.ok()) {
    gate->leave();
    first.completion->fail(pending.status(), operations);
  } else {
    std::lock_guard lock(mutex_);
    copies_.push_back(
        {&link, first.completion, operations, gate, remote.mapping, *std::move(pending), Status()});
    count_.store(copies_.size(), std::memory_order_release);
  }
  if (ops.size() > operations) start(link, ops.subspan(operations), remote);
}

bool DeviceCopies::poll() {
  if (idle()) return false;
  std::lock_guard lock(mutex_);
  return pollLocked();
}

// First the gate: the memory may be gone as soon as the operation is done.
void DeviceCopies::end(const Copy& copy, const Status& status) {
  copy.gate->leave();
  status.ok() ? copy.completion->finish(copy.operations)
              : copy.completion->fail(status, copy.operations);
}

bool DeviceCopies::pollLocked() {
  return eraseIf([](const Copy& copy) {
    auto passed = copy.pending->passed();
    if (passed.ok() && !*passed) return false;
    end(copy, copy.closed.ok() ? passed.status() : copy.closed);
    return true;
  });
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
  eraseIf([&](const Copy& copy) {
    if (copy.link != &link) return false;
    end(copy, error(Code::deadlineExceeded, "a device did not finish a copy in time"));
    return true;
  });
}

}  // namespace hmc::ipc
