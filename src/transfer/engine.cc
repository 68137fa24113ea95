#include "transfer/engine.h"

#include <algorithm>

#include "base/error.h"
#include "memory/copy.h"

namespace hmc {

namespace {

// Pieces are no larger than this, so that deadlines and cancels are looked at now and then.
constexpr size_t kLargestPiece = size_t{64} << 20;
constexpr size_t kPiecesPerPost = 64;

Status cancelledStatus() {
  return error(Code::cancelled, "the transfer was cancelled");
}

Status late(OpKind kind) {
  return error(Code::deadlineExceeded, "the {} did not finish before its deadline",
               kind == OpKind::put ? "put" : "get");
}

}  // namespace

bool Engine::touches(DeviceKind kind) const {
  const auto& kinds = transport_->facts().local;
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

Status Engine::run(OpKind kind, const Route& route, uint64_t localOffset, uint64_t remoteOffset,
                   size_t size, std::chrono::nanoseconds timeout) {
  if (size <= transport_->facts().largest && size <= kLargestPiece && !route.staged) {
    Completion completion(1);
    Op op{kind,
          route.local.at(localOffset),
          route.registration,
          route.remote,
          remoteOffset,
          size,
          &completion};
    if (route.link->post({&op, 1}) == 1) {
      if (completion.done()) return completion.status();
      Deadline deadline(timeout);
      while (!completion.done() && !deadline.passed()) poller_.round(completion, deadline);
      if (completion.done()) return completion.status();
      end(*route.link, completion, route.lease);
      return completion.status().ok() ? Status() : late(kind);
    }
  }
  return runSlowly(kind, route, {localOffset, 0, remoteOffset, 0, 1, size}, Deadline(timeout));
}

Status Engine::runSlowly(OpKind kind, const Route& route, const Shape& shape, Deadline deadline) {
  TransferState transfer(*this, kind, route, {shape}, {});
  Status status = wait(transfer, deadline);
  if (status.code() != Code::deadlineExceeded || transfer.done()) return status;
  cancel(transfer);
  return late(kind);
}

std::shared_ptr<TransferState> Engine::start(OpKind kind, const Route& route,
                                             std::vector<Shape> shapes,
                                             std::vector<std::shared_ptr<const void>> keep) {
  auto transfer =
      std::make_shared<TransferState>(*this, kind, route, std::move(shapes), std::move(keep));
  pump(*transfer, Deadline::now());
  return transfer;
}

Status Engine::wait(TransferState& transfer, Deadline deadline) {
  for (;;) {
    if (transfer.done()) return transfer.completion_.status();
    pump(transfer, deadline);
    if (transfer.done()) return transfer.completion_.status();
    if (deadline.passed()) return late(transfer.kind_);
    poller_.round(transfer.completion_, deadline);
  }
}

bool Engine::test(TransferState& transfer) {
  if (transfer.done()) return true;
  pump(transfer, Deadline::now());
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

void Engine::pump(TransferState& transfer, Deadline until) {
  std::lock_guard lock(transfer.mutex_);
  if (transfer.allPosted_) return;
  if (transfer.route_.staged) {
    movePiecesThroughHost(transfer);
  } else {
    postPieces(transfer, until);
  }
}

void Engine::postPieces(TransferState& transfer, Deadline until) {
  const Route& route = transfer.route_;
  const size_t largest = std::min(transport_->facts().largest, kLargestPiece);
  while (!transfer.next_.atEnd()) {
    if (transfer.completion_.failed()) transfer.stopped_ = transfer.completion_.status();
    if (!transfer.stopped_.ok()) break;
    Op ops[kPiecesPerPost];
    size_t filled = 0;
    for (Cursor at = transfer.next_; !at.atEnd() && filled < kPiecesPerPost; ++filled) {
      size_t size = at.left(largest);
      ops[filled] = {
          transfer.kind_, route.local.at(at.local()), route.registration, route.remote, at.remote(),
          size,           &transfer.completion_};
      at.advance(size);
    }
    transfer.completion_.expect(static_cast<uint32_t>(filled));
    size_t accepted = route.link->post({ops, filled});
    if (accepted < filled) transfer.completion_.finish(static_cast<uint32_t>(filled - accepted));
    for (size_t i = 0; i < accepted; ++i) transfer.next_.advance(ops[i].size);
    if (accepted < filled || (!transfer.next_.atEnd() && until.passed())) break;
  }
  if (!transfer.stopped_.ok()) {
    transfer.allPosted_ = true;
    transfer.completion_.fail(transfer.stopped_);
  } else if (transfer.next_.atEnd()) {
    transfer.allPosted_ = true;
    transfer.completion_.finish();
  }
}

void Engine::movePiecesThroughHost(TransferState& transfer) {
  bool busy = false;
  for (auto& piece : transfer.staged_) {
    while (advancePiece(transfer, piece)) {
    }
    busy = busy || piece.completion.has_value();
  }
  if (busy) return;
  if (transfer.stopped_.ok() && !transfer.next_.atEnd()) return;
  transfer.allPosted_ = true;
  for (auto& piece : transfer.staged_) {
    if (piece.slot) stages_.give(std::move(piece.slot));
  }
  if (transfer.stopped_.ok()) {
    transfer.completion_.finish();
  } else {
    transfer.completion_.fail(transfer.stopped_);
  }
}

// One step of one piece: fill, post, empty. False when it has to wait or has nothing to do.
bool Engine::advancePiece(TransferState& transfer, TransferState::StagedPiece& piece) {
  if (!piece.completion) {
    if (!transfer.stopped_.ok() || transfer.next_.atEnd()) return false;
    Status taken = takePiece(transfer, piece);
    if (!taken.ok()) transfer.stopped_ = taken;
    return taken.ok();
  }
  if (!piece.posted) {
    Op op{transfer.kind_,         piece.slot->host.ptr, piece.slot->registration.get(),
          transfer.route_.remote, piece.remote,         piece.device.size,
          &*piece.completion};
    piece.posted = transfer.route_.link->post({&op, 1}) == 1;
    return piece.posted;
  }
  if (!piece.completion->done()) return false;
  Status status = piece.completion->status();
  if (status.ok() && transfer.kind_ == OpKind::get) {
    status = copy(piece.device, piece.slot->host.slice(0, piece.device.size));
  }
  if (!status.ok() && transfer.stopped_.ok()) transfer.stopped_ = status;
  piece.completion.reset();
  return true;
}

Status Engine::takePiece(TransferState& transfer, TransferState::StagedPiece& piece) {
  if (!piece.slot) {
    HMC_ASSIGN(piece.slot, stages_.take());
  }
  size_t size = transfer.next_.left(std::min(transport_->facts().largest, StagePool::kSlotSize));
  piece.device = transfer.route_.local.slice(transfer.next_.local(), size);
  piece.remote = transfer.next_.remote();
  piece.posted = false;
  if (transfer.kind_ == OpKind::put) HMC_TRY(copy(piece.slot->host, piece.device));
  transfer.next_.advance(size);
  piece.completion.emplace(1U);
  return Status();
}

}  // namespace hmc
