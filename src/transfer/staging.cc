#include "transfer/staging.h"

#include "base/error.h"
#include "memory/copy.h"

namespace hmc {

using Step = StagedPiece::Step;

namespace {

// Memory that the transport touches needs no slot here. But where its blocks are smaller than this,
// an operation for each of them costs more than gathering them.
constexpr size_t kGatherBelow = size_t{32} << 10;

bool needsSlot(const Route& route, const SlotBlocks& blocks) {
  const size_t count = blocks.near().size();
  return route.staged || (count > 1 && blocks.bytes() / count < kGatherBelow);
}

}  // namespace

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
    case Step::posting:
      return post(transfer, piece);
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
    startPost(piece);
  } else if (posted && put && piece.farSlot) {
    copyFar(transfer, piece);
  } else if (posted && !put && piece.throughSlot) {
    startCopy(transfer, piece, Step::emptying);
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
  piece.blocks.take(transfer.next, StagePool::kSlotSize);
  piece.throughSlot = needsSlot(route, piece.blocks);
  if (piece.throughSlot && !piece.slot) {
    auto slot = pool_.take(route.local.device);
    if (!slot.ok()) {
      end(transfer, piece, slot.status());
      return false;
    }
    piece.slot = *std::move(slot);
  }
  if (piece.farSlot && transfer.kind == OpKind::get) {
    copyFar(transfer, piece);
  } else if (piece.throughSlot && transfer.kind == OpKind::put) {
    startCopy(transfer, piece, Step::filling);
  } else {
    startPost(piece);
  }
  return true;
}

// Between our slot and local memory: into the slot when it is filled.
void Staging::startCopy(Transfer& transfer, StagedPiece& piece, Step step) {
  const bool fill = step == Step::filling;
  const size_t bytes = piece.blocks.bytes();
  const Region& local = transfer.route.local;
  const Region slot = piece.slot->host->region(bytes);
  auto copy = PendingCopy::startBatch(
      {fill ? slot : local, fill ? local : slot, piece.blocks.near(), bytes, fill});
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
    passed =
        error(Code::deadlineExceeded, "{} did not finish a copy of {} bytes within {} s",
              transfer.route.local.device.toString(), piece.blocks.bytes(), kCopyTimeout.count());
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

// From slot to slot in one go; where only one side has a slot, as the blocks lie on the other.
void Staging::startPost(StagedPiece& piece) {
  piece.whole = {0, 0, piece.blocks.bytes()};
  if (piece.throughSlot && piece.farSlot) {
    piece.wire.emplace(std::span<const Block>(&piece.whole, 1));
  } else {
    piece.wire.emplace(piece.throughSlot ? piece.blocks.far() : piece.blocks.near());
  }
  piece.next.emplace(*piece.wire);
  piece.completion.emplace(1U);  // one count belongs to what was not posted yet
  piece.step = Step::posting;
}

// False when the link takes no more for now. What it took ends also where the transfer was stopped.
bool Staging::post(Transfer& transfer, StagedPiece& piece) {
  const Route& route = transfer.route;
  const Wire wire{*route.link,
                  transfer.kind,
                  piece.throughSlot ? piece.slot->host->region(StagePool::kSlotSize) : route.local,
                  piece.throughSlot ? piece.slot->registration.get() : route.registration,
                  piece.farSlot ? &route.far->slots() : route.remote,
                  piece.farSlot ? *piece.farSlot * StagePool::kSlotSize : 0};
  while (!piece.next->atEnd() && transfer.stopped.ok() && !piece.completion->failed()) {
    if (!ops_.postNext(wire, *piece.next, StagePool::kSlotSize, StagePool::kSlotSize,
                       *piece.completion, transfer.id)) {
      return false;
    }
  }
  piece.step = Step::posted;
  piece.completion->finish();
  return true;
}

void Staging::copyFar(Transfer& transfer, StagedPiece& piece) {
  piece.step = Step::copyingFar;
  piece.completion.emplace(1U, &farCopies_);
  transfer.route.far->copy(transfer.kind, *piece.farSlot, piece.blocks.far(), *piece.completion);
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
