#include "transfer/engine.h"

#include <algorithm>

#include "base/error.h"
#include "memory/copy.h"
#include "transport/check.h"

namespace hmc {

namespace {

// Pieces are no larger than this, so that deadlines and cancels are looked at now and then.
constexpr size_t kLargestPiece = size_t{64} << 20;
constexpr size_t kPiecesPerPost = 64;
// What start() and test() post at most: over some transports that is a copy, and who calls them has
// other work.
constexpr size_t kBytesInPassing = size_t{8} << 20;
constexpr std::chrono::microseconds kGlance{200};
// A bound on the harm of a wake-up that was missed.
constexpr std::chrono::milliseconds kFarRound{100};

Status cancelledStatus() {
  return error(Code::cancelled, "the transfer was cancelled");
}

Status late(OpKind kind) {
  return error(Code::deadlineExceeded, "the {} did not finish before its deadline", opName(kind));
}

}  // namespace

size_t Engine::post(Link& link, std::span<const Op> ops) {
  UseGate& gate = ops.front().remote->gate();
  if (!gate.enter()) [[unlikely]] {
    const Status why = error(Code::notFound, "the peer has taken that memory back");
    for (const Op& op : ops) op.completion->fail(why);
    return ops.size();
  }
  const size_t accepted = link.post(ops);
  gate.leave();
  return accepted;
}

bool Engine::touches(DeviceKind kind) const {
  const auto& kinds = transport_->facts().local;
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

Status Engine::run(OpKind kind, const Route& route, uint64_t localOffset, uint64_t remoteOffset,
                   size_t size, std::chrono::nanoseconds timeout) {
  if (size <= transport_->facts().largest && size <= kLargestPiece && !route.staged && !route.far) {
    Completion completion(1);
    Op op{kind,
          route.local.at(localOffset),
          route.registration,
          route.remote,
          remoteOffset,
          size,
          &completion};
    if (post(*route.link, {&op, 1}) == 1) {
      if (completion.done()) return completion.status();
      Deadline deadline(timeout);
      do {
        poller_.round(completion, deadline);
      } while (!completion.done() && !deadline.passed());
      if (completion.done()) return completion.status();
      end(*route.link, completion, route.lease);
      return completion.status().ok() ? Status() : late(kind);
    }
  }
  return runSlowly(kind, route, {localOffset, 0, remoteOffset, 0, 1, size}, Deadline(timeout));
}

Status Engine::runSlowly(OpKind kind, const Route& route, const Shape& shape, Deadline deadline) {
  TransferState transfer(*this, nullptr, kind, route, {shape}, {});
  Status status = wait(transfer, deadline);
  if (status.code() != Code::deadlineExceeded || transfer.done()) return status;
  cancel(transfer);
  return late(kind);
}

std::shared_ptr<TransferState> Engine::start(OpKind kind, const Route& route,
                                             std::vector<Shape> shapes,
                                             std::vector<std::shared_ptr<const void>> keep) {
  auto transfer = std::make_shared<TransferState>(*this, &progressThread_, kind, route,
                                                  std::move(shapes), std::move(keep));
  pump(*transfer, Deadline::now(), kBytesInPassing);
  if (route.far && !transfer->done()) remember(transfer);
  return transfer;
}

Status Engine::wait(TransferState& transfer, Deadline deadline) {
  for (;;) {
    if (transfer.done()) return transfer.completion_.status();
    const uint64_t seen = transfer.route_.far ? transfer.route_.far->changes() : 0;
    pump(transfer, deadline);
    if (transfer.done()) return transfer.completion_.status();
    if (deadline.passed()) return late(transfer.kind_);
    rest(transfer, seen, deadline);
  }
}

// Sleeps until something may have changed for a transfer since the far stage had changed `seen`
// times. Nothing wakes up for both the link and the far stage, so while a piece is on the link, the
// other is looked at often.
void Engine::rest(TransferState& transfer, uint64_t seen, Deadline deadline) {
  if (!transfer.route_.far) return poller_.round(transfer.completion_, deadline);
  bool onLink = false;
  bool starved = true;
  {
    using Step = TransferState::StagedPiece::Step;
    std::lock_guard lock(transfer.mutex_);
    for (const auto& piece : transfer.staged_) {
      onLink = onLink || piece.step == Step::toPost || piece.step == Step::posted;
      starved = starved && piece.step == Step::idle;
    }
  }
  if (starved) moveHolders();
  if (onLink || starved) return poller_.round(transfer.completion_, earlier(deadline, kGlance));
  transfer.route_.far->await(seen, earlier(deadline, kFarRound));
}

void Engine::remember(const std::shared_ptr<TransferState>& holder) {
  std::lock_guard lock(mutex_);
  std::erase_if(holders_, [](const auto& one) {
    auto transfer = one.lock();
    return !transfer || transfer->done();
  });
  holders_.push_back(holder);
}

void Engine::moveHolders() {
  std::vector<std::weak_ptr<TransferState>> holders;
  {
    std::lock_guard lock(mutex_);
    holders = holders_;
  }
  for (const auto& one : holders) {
    if (auto holder = one.lock()) pump(*holder, Deadline::now());
  }
}

bool Engine::test(TransferState& transfer) {
  if (transfer.done()) return true;
  pump(transfer, Deadline::now(), kBytesInPassing);
  poller_.round(transfer.completion_, Deadline::now());
  return transfer.done();
}

Status Engine::cancel(TransferState& transfer) {
  {
    std::lock_guard lock(transfer.mutex_);
    if (!transfer.allPosted_ && transfer.stopped_.ok()) transfer.stopped_ = cancelledStatus();
  }
  wait(transfer, transfer.route_.lease);
  if (!transfer.done()) {
    transfer.route_.link->close(
        error(Code::cancelled, "a transfer was cancelled, and the peer did not answer within {} ms",
              transfer.route_.lease.count()));
    poller_.kick();
    while (!transfer.done()) wait(transfer, transfer.route_.lease);
  }
  return transfer.completion_.status();
}

// Waits out one posted operation after its deadline: what is on its way arrives, or the link goes.
void Engine::end(Link& link, const Completion& completion, std::chrono::milliseconds lease) {
  Deadline patience(lease);
  while (!completion.done() && !patience.passed()) poller_.round(completion, patience);
  if (completion.done()) return;
  link.close(error(Code::cancelled,
                   "a transfer passed its deadline, and the peer did not answer within {} ms",
                   lease.count()));
  poller_.kick();
  // The Link's contract: everything pending finishes within the lease.
  while (!completion.done()) poller_.round(completion, lease);
}

Posting Engine::pump(TransferState& transfer, Deadline until, size_t most) {
  std::lock_guard lock(transfer.mutex_);
  return pumpLocked(transfer, until, most);
}

Posting Engine::tryPump(TransferState& transfer) {
  std::unique_lock lock(transfer.mutex_, std::try_to_lock);
  return lock ? pumpLocked(transfer, Deadline::now(), kLargestPiece) : Posting::blocked;
}

bool Engine::posted(TransferState& transfer) {
  std::unique_lock lock(transfer.mutex_, std::try_to_lock);
  return lock && transfer.allPosted_;
}

Posting Engine::pumpLocked(TransferState& transfer, Deadline until, size_t most) {
  if (transfer.allPosted_) return Posting::over;
  return transfer.direct() ? postPieces(transfer, until, most) : movePiecesThroughHost(transfer);
}

Posting Engine::postPieces(TransferState& transfer, Deadline until, size_t most) {
  const Route& route = transfer.route_;
  const size_t largest = std::min({transport_->facts().largest, kLargestPiece, most});
  while (!transfer.next_.atEnd()) {
    if (transfer.completion_.failed()) transfer.stopped_ = transfer.completion_.status();
    if (!transfer.stopped_.ok()) break;
    Op ops[kPiecesPerPost];
    size_t filled = 0;
    size_t bytes = 0;
    Cursor at = transfer.next_;
    for (; !at.atEnd() && filled < kPiecesPerPost && bytes < most; ++filled) {
      const size_t size = at.left(largest);
      bytes += size;
      ops[filled] = {
          transfer.kind_, route.local.at(at.local()), route.registration, route.remote, at.remote(),
          size,           &transfer.completion_};
      at.advance(size);
    }
    transfer.completion_.expect(static_cast<uint32_t>(filled));
    size_t accepted = post(*route.link, {ops, filled});
    if (accepted < filled) {
      transfer.completion_.finish(static_cast<uint32_t>(filled - accepted));
      for (size_t i = 0; i < accepted; ++i) transfer.next_.advance(ops[i].size);
      return Posting::blocked;
    }
    transfer.next_ = at;
    if (!transfer.next_.atEnd() && until.passed()) return Posting::paused;
  }
  transfer.allPosted_ = true;
  if (transfer.stopped_.ok()) {
    transfer.completion_.finish();
  } else {
    transfer.completion_.fail(transfer.stopped_);
  }
  return Posting::over;
}

Posting Engine::movePiecesThroughHost(TransferState& transfer) {
  bool busy = false;
  for (auto& piece : transfer.staged_) {
    while (advancePiece(transfer, piece)) {
    }
    busy = busy || piece.step != TransferState::StagedPiece::Step::idle;
  }
  if (busy) return Posting::blocked;
  if (transfer.stopped_.ok() && !transfer.next_.atEnd()) return Posting::starved;
  transfer.allPosted_ = true;
  for (auto& piece : transfer.staged_) {
    if (piece.slot) stages_.give(std::move(piece.slot));
  }
  if (transfer.stopped_.ok()) {
    transfer.completion_.finish();
  } else {
    transfer.completion_.fail(transfer.stopped_);
  }
  return Posting::over;
}

// One step of one piece: fill, post, have it copied, empty. False when it has to wait or has
// nothing to do.
bool Engine::advancePiece(TransferState& transfer, TransferState::StagedPiece& piece) {
  using Step = TransferState::StagedPiece::Step;
  const bool put = transfer.kind_ == OpKind::put;
  if (piece.step == Step::idle) return beginPiece(transfer, piece);
  if (piece.step == Step::toPost) {
    if (transfer.stopped_.ok()) return postPiece(transfer, piece);
    endPiece(transfer, piece, transfer.stopped_);
    return true;
  }
  if (!piece.completion->done()) return false;
  Status status = piece.completion->status();
  if (status.ok()) status = transfer.stopped_;
  if (status.ok() && put && piece.farSlot && piece.step == Step::posted) {
    copyFar(transfer, piece);
  } else if (status.ok() && !put && piece.step == Step::copying) {
    piece.step = Step::toPost;
  } else {
    endPiece(transfer, piece, std::move(status));
  }
  return true;
}

bool Engine::beginPiece(TransferState& transfer, TransferState::StagedPiece& piece) {
  if (!transfer.stopped_.ok() || transfer.next_.atEnd()) return false;
  if (FarStage* far = transfer.route_.far) {
    piece.farSlot = far->take();
    if (!piece.farSlot) return false;
  }
  Status taken = takePiece(transfer, piece);
  if (!taken.ok()) {
    endPiece(transfer, piece, taken);
  } else if (piece.farSlot && transfer.kind_ == OpKind::get) {
    copyFar(transfer, piece);
  } else {
    piece.step = TransferState::StagedPiece::Step::toPost;
  }
  return taken.ok();
}

Status Engine::takePiece(TransferState& transfer, TransferState::StagedPiece& piece) {
  const bool staged = transfer.route_.staged;
  if (staged && !piece.slot) {
    HMC_ASSIGN(piece.slot, stages_.take());
  }
  size_t size = transfer.next_.left(std::min(transport_->facts().largest, StagePool::kSlotSize));
  piece.local = transfer.route_.local.slice(transfer.next_.local(), size);
  piece.remote = transfer.next_.remote();
  if (staged && transfer.kind_ == OpKind::put) HMC_TRY(copy(piece.slot->host, piece.local));
  transfer.next_.advance(size);
  return Status();
}

bool Engine::postPiece(TransferState& transfer, TransferState::StagedPiece& piece) {
  const Route& route = transfer.route_;
  piece.completion.emplace(1U);
  Op op{transfer.kind_,
        route.staged ? piece.slot->host.ptr : piece.local.ptr,
        route.staged ? piece.slot->registration.get() : route.registration,
        piece.farSlot ? &route.far->slots() : route.remote,
        piece.farSlot ? *piece.farSlot * StagePool::kSlotSize : piece.remote,
        piece.local.size,
        &*piece.completion};
  if (post(*route.link, {&op, 1}) == 0) return false;
  piece.step = TransferState::StagedPiece::Step::posted;
  return true;
}

void Engine::copyFar(TransferState& transfer, TransferState::StagedPiece& piece) {
  piece.step = TransferState::StagedPiece::Step::copying;
  piece.completion.emplace(1U, &farNews_);
  transfer.route_.far->copy(transfer.kind_, *piece.farSlot, piece.remote, piece.local.size,
                            *piece.completion);
}

void Engine::endPiece(TransferState& transfer, TransferState::StagedPiece& piece, Status status) {
  if (status.ok() && transfer.route_.staged && transfer.kind_ == OpKind::get)
    status = copy(piece.local, piece.slot->host.slice(0, piece.local.size));
  if (!status.ok() && transfer.stopped_.ok()) transfer.stopped_ = status;
  if (piece.farSlot) {
    transfer.route_.far->give(*piece.farSlot);
    if (progressThread_.watching()) progressThread_.nudge();
  }
  piece.farSlot.reset();
  piece.step = TransferState::StagedPiece::Step::idle;
}

}  // namespace hmc
