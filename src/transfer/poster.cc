#include "transfer/poster.h"

#include <algorithm>

namespace hmc {

namespace {

constexpr size_t kMostForADevice = size_t{1} << 30;

// Blocks were checked; where one does not fit, the transfer goes no further.
bool accept(Transfer& transfer, const Status& checked) {
  if (!checked.ok()) transfer.stopped = checked.within(transfer.route.peer);
  return checked.ok();
}

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

void Poster::keepRest(Transfer& transfer) {
  std::lock_guard lock(transfer.mutex);
  if (!transfer.allPosted) transfer.pieces.keep();
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
  if (!transfer.direct()) checkRest(transfer);
  const PostResult result =
      transfer.direct() ? postPieces(transfer, until, most) : staging_.move(transfer);
  if (result == PostResult::allPosted) end(transfer);
  return result;
}

// The engine waits, and not the device: so the transfer can be cancelled meanwhile.
bool Poster::waitsForEvent(Transfer& transfer) {
  if (transfer.ready || !transfer.stopped.ok()) return false;
  const auto passed = transfer.after->passed();
  if (!passed.ok()) transfer.stopped = passed.status();
  transfer.ready = !passed.ok() || *passed;
  return !transfer.ready;
}

PostResult Poster::postPieces(Transfer& transfer, Deadline until, size_t most) {
  // A device copies by itself: what it is given costs this thread next to nothing.
  if (!transfer.route.local.device.isHost()) most = std::max(most, kMostForADevice);
  bool whole = transfer.pieces.isList();  // until the link does not take it
  uint64_t bytes = 0;                     // of lists
  while (!transfer.next.atEnd()) {
    if (transfer.completion.failed()) transfer.stopped = transfer.completion.status();
    if (!transfer.stopped.ok()) break;
    whole = whole && postList(transfer);
    if (whole) {
      bytes += transfer.pieces.checked().bytes;
      if (bytes < most) continue;
    } else if (!checkRest(transfer)) {
      break;
    } else if (!postBatch(transfer, most)) {
      return PostResult::underWay;
    }
    if (!transfer.next.atEnd() && until.passed()) return PostResult::outOfTime;
  }
  return PostResult::allPosted;
}

// A part of the list as one operation. Its blocks are checked when it is their turn: while the
// processor checks one part, a device copies the one before.
bool Poster::postList(Transfer& transfer) {
  Pieces& pieces = transfer.pieces;
  const Route& route = transfer.route;
  // Empty blocks are passed over, so this may be beyond the end.
  while (transfer.next.index() >= pieces.checked().end()) {
    if (!accept(transfer, pieces.checkPart())) return false;
  }
  const Pieces::Part& part = pieces.checked();
  const size_t skipped = transfer.next.index() - part.first;
  if (!transfer.next.atStart() || skipped > part.count || part.bytes > kMostForADevice)
    return false;
  const ListOp list{transfer.kind,
                    route.local,
                    route.registration,
                    route.remote,
                    pieces.blocksOf(part).subspan(skipped),
                    part.bytes,
                    &transfer.completion,
                    skipped == 0 && pieces.even().memory ? &pieces.even() : nullptr};
  transfer.completion.expect(1);
  if (!ops_.postList(*route.link, list, transfer.id)) {
    transfer.completion.finish();
    return false;
  }
  transfer.next.skipTo(part.end());
  return true;
}

bool Poster::checkRest(Transfer& transfer) {
  return transfer.stopped.ok() && accept(transfer, transfer.pieces.checkRest());
}

// As many pieces as the link takes at once. False when it did not take all of them.
bool Poster::postBatch(Transfer& transfer, size_t most) {
  const Route& route = transfer.route;
  return ops_.postNext({*route.link, transfer.kind, route.local, route.registration, route.remote},
                       transfer.next, kLargestPiece, most, transfer.completion, transfer.id);
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
