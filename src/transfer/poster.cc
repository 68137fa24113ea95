#include "transfer/poster.h"

#include <algorithm>

namespace hmc {

namespace {
constexpr size_t kMostForADevice = size_t{1} << 30;
}  // namespace

PostResult Poster::post(Transfer& transfer, Deadline until, size_t most) {
  std::lock_guard lock(transfer.mutex);
  return postLocked(transfer, until, most);
}

PostResult Poster::tryPost(Transfer& transfer) {
  std::unique_lock lock(transfer.mutex, std::try_to_lock);
  return lock ? postLocked(transfer, Deadline::now(), kLargestPiece) : PostResult::underWay;
}

bool Poster::allPosted(Transfer& transfer) {
  std::unique_lock lock(transfer.mutex, std::try_to_lock);
  return lock && transfer.allPosted;
}

void Poster::stop(Transfer& transfer, const Status& why) {
  std::lock_guard lock(transfer.mutex);
  if (!transfer.allPosted && transfer.stopped.ok()) transfer.stopped = why;
}

void Poster::addSlotHolder(Transfer& transfer) {
  std::lock_guard lock(mutex_);
  slotHolders_.insert(&transfer);
}

bool Poster::moveSlotHolders() {
  bool onDevice = false;
  // None of them can end, and go, before we are through: end() needs this lock.
  std::lock_guard lock(mutex_);
  for (Transfer* holder : slotHolders_) {
    std::unique_lock mine(holder->mutex, std::try_to_lock);
    if (mine && holder->ready)
      onDevice = staging_.move(*holder) == PostResult::onDevice || onDevice;
  }
  return onDevice;
}

PostResult Poster::postLocked(Transfer& transfer, Deadline until, size_t most) {
  if (transfer.allPosted) return PostResult::allPosted;
  if (waitsForEvent(transfer)) return PostResult::onDevice;
  const PostResult result =
      transfer.direct() ? postPieces(transfer, until, most) : staging_.move(transfer);
  if (result == PostResult::allPosted) end(transfer);
  return result;
}

// Where the transport's device copies wait for the event by themselves, nobody does here.
bool Poster::waitsForEvent(Transfer& transfer) {
  if (transfer.ready || !transfer.stopped.ok()) return false;
  if (transfer.direct() && transport_.facts().waitsForEvents) return false;
  const auto passed = transfer.after->passed();
  if (!passed.ok()) transfer.stopped = passed.status();
  transfer.ready = !passed.ok() || *passed;
  return !transfer.ready;
}

PostResult Poster::postPieces(Transfer& transfer, Deadline until, size_t most) {
  const Route& route = transfer.route;
  // A device copies by itself: what it is given costs this thread next to nothing.
  if (!route.local.device.isHost()) most = std::max(most, kMostForADevice);
  const size_t largest = std::min({transport_.facts().largest, kLargestPiece, most});
  const size_t batch = transport_.facts().batch;
  static thread_local std::vector<Op> ops;
  if (ops.size() < batch) ops.resize(batch);
  while (!transfer.next.atEnd()) {
    if (transfer.completion.failed()) transfer.stopped = transfer.completion.status();
    if (!transfer.stopped.ok()) break;
    size_t filled = 0;
    size_t bytes = 0;
    DeviceEvent* const after = transfer.ready ? nullptr : transfer.after.get();
    Cursor at = transfer.next;
    for (; !at.atEnd() && filled < batch && bytes < most; ++filled) {
      const size_t size = at.left(largest);
      bytes += size;
      ops[filled] = {transfer.kind,        route.local.at(at.local()),
                     route.registration,   route.remote,
                     at.remote(),          size,
                     &transfer.completion, after};
      at.advance(size);
    }
    transfer.completion.expect(static_cast<uint32_t>(filled));
    size_t accepted = ops_.post(*route.link, {ops.data(), filled}, transfer.id);
    if (accepted < filled) {
      transfer.completion.finish(static_cast<uint32_t>(filled - accepted));
      for (size_t i = 0; i < accepted; ++i) transfer.next.advance(ops[i].size);
      return PostResult::underWay;
    }
    transfer.next = at;
    if (!transfer.next.atEnd() && until.passed()) return PostResult::outOfTime;
  }
  return PostResult::allPosted;
}

void Poster::end(Transfer& transfer) {
  transfer.allPosted = true;
  if (!transfer.direct()) staging_.release(transfer);
  if (transfer.route.far) {
    std::lock_guard lock(mutex_);
    slotHolders_.erase(&transfer);
  }
  transfer.completion.end(transfer.stopped);
}

}  // namespace hmc
