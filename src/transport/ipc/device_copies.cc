#include "transport/ipc/device_copies.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/futex.h"
#include "transport/check.h"

namespace hmc::ipc {

namespace {

constexpr std::chrono::microseconds kPollEvery{50};

// Two devices of one vendor, or a device and the host.
bool areOfOneKind(const Device& a, const Device& b) {
  return a.isHost() || b.isHost() || a.kind == b.kind;
}

Result<std::unique_ptr<PendingCopy>> startList(const ListOp& list, const Region& remote) {
  const bool put = list.kind == OpKind::put;
  EvenList even = list.even ? std::move(*list.even) : EvenList{};
  return PendingCopy::startBatch({put ? remote : list.local, put ? list.local : remote, list.blocks,
                                  list.bytes, put, even.blocks},
                                 std::move(even.memory));
}

// One after the other through the host where two vendors meet.
Result<std::unique_ptr<PendingCopy>> startStaged(const Op& op, const Region& remote) {
  const Region near{op.local, op.size, op.registration->region.device};
  const Region far = remote.slice(op.remoteOffset, op.size);
  return op.kind == OpKind::put ? PendingCopy::start(far, near) : PendingCopy::start(near, far);
}

}  // namespace

template <class Start>
void DeviceCopies::begin(const Link& link, const MappedRemote& remote, Completion* completion,
                         uint32_t operations, Start start) {
  const auto& gate = remote.sharedGate();
  if (!gate->enter()) return completion->fail(memoryRevoked(), operations);
  auto pending = start();
  if (!pending.ok()) {
    gate->leave();
    return completion->fail(pending.status(), operations);
  }
  std::lock_guard lock(mutex_);
  copies_.push_back(
      {&link, completion, operations, gate, remote.mapping, *std::move(pending), Status()});
  count_.store(copies_.size(), std::memory_order_release);
}

void DeviceCopies::start(const Link& link, std::span<const Op> ops, const MappedRemote& remote) {
  const Op& first = ops.front();
  const Region& local = first.registration->region;
  if (!areOfOneKind(local.device, remote.region.device)) {
    for (const Op& op : ops)
      begin(link, remote, op.completion, 1, [&] { return startStaged(op, remote.region); });
    return;
  }
  static thread_local std::vector<Block> blocks;
  blocks.clear();
  uint64_t bytes = 0;
  for (const Op& op : ops) {
    const auto at = static_cast<size_t>(static_cast<char*>(op.local) - local.at(0));
    blocks.push_back({at, op.remoteOffset, op.size});
    bytes += op.size;
  }
  const ListOp list{first.kind, local, first.registration, first.remote,
                    blocks,     bytes, first.completion};
  begin(link, remote, first.completion, static_cast<uint32_t>(ops.size()),
        [&] { return startList(list, remote.region); });
}

bool DeviceCopies::start(const Link& link, const ListOp& list, const MappedRemote& remote) {
  if (!areOfOneKind(list.local.device, remote.region.device)) return false;
  begin(link, remote, list.completion, 1, [&] { return startList(list, remote.region); });
  return true;
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
