#include "transfer/staging.h"

#include <algorithm>

#include "base/error.h"
#include "memory/copy.h"

namespace hmc {

using Step = StagedPiece::Step;

PostResult Staging::move(Transfer& transfer) {
  bool busy = false;
  for (auto& piece : transfer.staged) {
    while (advance(transfer, piece)) {
    }
    busy = busy || piece.step != Step::idle;
  }
  if (busy) return PostResult::underWay;
  return transfer.stopped.ok() && !transfer.next.atEnd() ? PostResult::noFarSlot
                                                         : PostResult::allPosted;
}

void Staging::release(Transfer& transfer) {
  for (auto& piece : transfer.staged) {
    if (piece.slot) pool_.give(std::move(piece.slot));
  }
}

// One step of one piece: fill, post, have it copied, empty. False when it has to wait or has
// nothing to do.
bool Staging::advance(Transfer& transfer, StagedPiece& piece) {
  const bool put = transfer.kind == OpKind::put;
  if (piece.step == Step::idle) return begin(transfer, piece);
  if (piece.step == Step::toPost) {
    if (transfer.stopped.ok()) return post(transfer, piece);
    end(transfer, piece, transfer.stopped);
    return true;
  }
  if (!piece.completion->done()) return false;
  Status status = piece.completion->status();
  if (status.ok()) status = transfer.stopped;
  if (status.ok() && put && piece.farSlot && piece.step == Step::posted) {
    copyFar(transfer, piece);
  } else if (status.ok() && !put && piece.step == Step::copying) {
    piece.step = Step::toPost;
  } else {
    end(transfer, piece, std::move(status));
  }
  return true;
}

bool Staging::begin(Transfer& transfer, StagedPiece& piece) {
  if (!transfer.stopped.ok() || transfer.next.atEnd()) return false;
  if (FarStage* far = transfer.route.far) {
    piece.farSlot = far->take();
    if (!piece.farSlot) return false;
  }
  Status filled = fill(transfer, piece);
  if (!filled.ok()) {
    end(transfer, piece, filled);
  } else if (piece.farSlot && transfer.kind == OpKind::get) {
    copyFar(transfer, piece);
  } else {
    piece.step = Step::toPost;
  }
  return filled.ok();
}

// Takes the next piece of the transfer, for a put with its bytes.
Status Staging::fill(Transfer& transfer, StagedPiece& piece) {
  const bool staged = transfer.route.staged;
  if (staged && !piece.slot) {
    HMC_ASSIGN(piece.slot, pool_.take());
  }
  size_t size = transfer.next.left(std::min(transport_.facts().largest, StagePool::kSlotSize));
  piece.local = transfer.route.local.slice(transfer.next.local(), size);
  piece.remote = transfer.next.remote();
  if (staged && transfer.kind == OpKind::put) HMC_TRY(copy(piece.slot->host, piece.local));
  transfer.next.advance(size);
  return Status();
}

bool Staging::post(Transfer& transfer, StagedPiece& piece) {
  const Route& route = transfer.route;
  piece.completion.emplace(1U);
  Op op{transfer.kind,
        route.staged ? piece.slot->host.ptr : piece.local.ptr,
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
  piece.step = Step::copying;
  piece.completion.emplace(1U, &farCopies_);
  transfer.route.far->copy(transfer.kind, *piece.farSlot, piece.remote, piece.local.size,
                           *piece.completion);
}

void Staging::end(Transfer& transfer, StagedPiece& piece, Status status) {
  if (status.ok() && transfer.route.staged && transfer.kind == OpKind::get)
    status = copy(piece.local, piece.slot->host.slice(0, piece.local.size));
  if (!status.ok() && transfer.stopped.ok()) transfer.stopped = status;
  if (piece.farSlot) {
    transfer.route.far->give(*piece.farSlot);
    farCopies_.poller.kick();  // somebody may wait for a slot
  }
  piece.farSlot.reset();
  piece.step = Step::idle;
}

}  // namespace hmc
