#include "transfer/staging.h"

#include <algorithm>

#include "base/error.h"
#include "memory/copy.h"

namespace hmc {

using Step = StagedPiece::Step;

PostResult Staging::move(Transfer& transfer) {
  bool busy = false;
  bool onDevice = false;
  for (auto& piece : transfer.staged) {
    while (advance(transfer, piece)) {
    }
    busy = busy || piece.step != Step::idle;
    onDevice = onDevice || piece.step == Step::filling || piece.step == Step::emptying;
  }
  if (onDevice) return PostResult::onDevice;
  if (busy) return PostResult::underWay;
  return transfer.stopped.ok() && !transfer.next.atEnd() ? PostResult::noFarSlot
                                                         : PostResult::allPosted;
}

void Staging::release(Transfer& transfer) {
  for (auto& piece : transfer.staged) {
    if (piece.slot) pool_.give(std::move(piece.slot));
  }
}

// One step of one piece. False when it has to wait or has nothing to do.
bool Staging::advance(Transfer& transfer, StagedPiece& piece) {
  switch (piece.step) {
    case Step::idle:
      return begin(transfer, piece);
    case Step::toPost:
      if (transfer.stopped.ok()) return post(transfer, piece);
      end(transfer, piece, transfer.stopped);
      return true;
    case Step::filling:
    case Step::emptying:
      return advanceCopy(transfer, piece);
    case Step::posted:
    case Step::copyingFar:
      break;
  }
  if (!piece.completion->done()) return false;
  const Status status = piece.completion->status();
  proceed(transfer, piece, status.ok() ? transfer.stopped : status);
  return true;
}

// What was under way for the piece has ended. A put goes: filling, post, copyingFar. A get goes:
// copyingFar, post, emptying. Steps that the route does not need are left out.
void Staging::proceed(Transfer& transfer, StagedPiece& piece, const Status& status) {
  const bool put = transfer.kind == OpKind::put;
  const bool posted = piece.step == Step::posted;
  if (!status.ok()) {
    end(transfer, piece, status);
  } else if (piece.step == Step::filling || (piece.step == Step::copyingFar && !put)) {
    piece.step = Step::toPost;
  } else if (posted && put && piece.farSlot) {
    copyFar(transfer, piece);
  } else if (posted && !put && transfer.route.staged) {
    const size_t size = piece.local.size;
    startCopy(transfer, piece, Step::emptying, piece.local, piece.slot->host->region(size));
  } else {
    end(transfer, piece, Status());
  }
}

bool Staging::begin(Transfer& transfer, StagedPiece& piece) {
  if (!transfer.stopped.ok() || transfer.next.atEnd()) return false;
  const Route& route = transfer.route;
  if (route.far) {
    piece.farSlot = route.far->take();
    if (!piece.farSlot) return false;
  }
  if (route.staged && !piece.slot) {
    auto slot = pool_.take(route.local.device);
    if (!slot.ok()) {
      end(transfer, piece, slot.status());
      return false;
    }
    piece.slot = *std::move(slot);
  }
  const size_t size =
      transfer.next.left(std::min(transport_.facts().largest, StagePool::kSlotSize));
  piece.local = route.local.slice(transfer.next.local(), size);
  piece.remote = transfer.next.remote();
  transfer.next.advance(size);
  if (piece.farSlot && transfer.kind == OpKind::get) {
    copyFar(transfer, piece);
  } else if (route.staged && transfer.kind == OpKind::put) {
    startCopy(transfer, piece, Step::filling, piece.slot->host->region(size), piece.local);
  } else {
    piece.step = Step::toPost;
  }
  return true;
}

void Staging::startCopy(Transfer& transfer, StagedPiece& piece, Step step, const Region& to,
                        const Region& from) {
  auto copy = PendingCopy::start(to, from);
  if (!copy.ok()) return abandon(transfer, piece, copy.status());
  piece.copy = *std::move(copy);
  piece.copyUntil = Deadline(kCopyTimeout);
  piece.step = step;
}

// A device does not stop half-way, so a transfer that was stopped waits for it, too.
bool Staging::advanceCopy(Transfer& transfer, StagedPiece& piece) {
  auto passed = piece.copy->passed();
  if (passed.ok() && !*passed) {
    if (!piece.copyUntil.passed()) return false;
    passed = error(Code::deadlineExceeded, "{} did not finish a copy of {} bytes within {} s",
                   piece.local.device.toString(), piece.local.size, kCopyTimeout.count());
  }
  piece.copy.reset();
  if (!passed.ok()) {
    abandon(transfer, piece, passed.status());
  } else {
    proceed(transfer, piece, transfer.stopped);
  }
  return true;
}

void Staging::abandon(Transfer& transfer, StagedPiece& piece, const Status& why) {
  StagingBuffer::abandon(std::move(piece.slot->host));
  piece.slot.reset();
  end(transfer, piece, why);
}

bool Staging::post(Transfer& transfer, StagedPiece& piece) {
  const Route& route = transfer.route;
  piece.completion.emplace(1U);
  Op op{transfer.kind,
        route.staged ? piece.slot->host->region(piece.local.size).ptr : piece.local.ptr,
        route.staged ? piece.slot->registration.get() : route.registration,
        piece.farSlot ? &route.far->slots() : route.remote,
        piece.farSlot ? *piece.farSlot * StagePool::kSlotSize : piece.remote,
        piece.local.size,
        &*piece.completion};
  if (ops_.post(*route.link, {&op, 1}, transfer.id) == 0) return false;
  piece.step = Step::posted;
  return true;
}

void Staging::copyFar(Transfer& transfer, StagedPiece& piece) {
  piece.step = Step::copyingFar;
  piece.completion.emplace(1U, &farCopies_);
  transfer.route.far->copy(transfer.kind, *piece.farSlot, piece.remote, piece.local.size,
                           *piece.completion);
}

void Staging::end(Transfer& transfer, StagedPiece& piece, const Status& status) {
  if (!status.ok() && transfer.stopped.ok()) transfer.stopped = status;
  if (piece.farSlot) {
    transfer.route.far->give(*piece.farSlot);
    farCopies_.poller.kick();  // somebody may wait for a slot
  }
  piece.farSlot.reset();
  piece.step = Step::idle;
}

}  // namespace hmc
