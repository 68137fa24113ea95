#include "transport/ipc/outgoing.h"

#include <algorithm>

#include "base/error.h"
#include "base/fd_exchange.h"
#include "base/guarded_copy.h"
#include "transport/check.h"
#include "transport/exports.h"
#include "transport/ipc/neighbour.h"

namespace hmc::ipc {

namespace {

constexpr size_t kMostPending = 256;
// How often to check that a peer that owes us answers is alive.
constexpr std::chrono::milliseconds kProbe{100};

Status refusal(const Op& op, Code outcome) {
  switch (outcome) {
    case Code::notFound:
      return Export::removed(op.kind, op.size);
    case Code::permissionDenied:
    case Code::outOfRange:
      return error(outcome, "the peer refused {} of {} bytes at remote offset {}: {}",
                   opName(op.kind), op.size, op.remoteOffset, codeName(outcome));
    case Code::disconnected:
      return error(outcome, "the peer has heard nothing from us for too long");
    default:
      return unusableThere(op.kind, op.remoteOffset, op.size);
  }
}

}  // namespace

Result<std::unique_ptr<Outgoing>> Outgoing::open(const Neighbour& peer,
                                                 const SharedBlock<ServicePage>& ours,
                                                 SharedBlock<ServicePage> theirs,
                                                 std::shared_ptr<Lease> lease, Deadline deadline) {
  HMC_ASSIGN(auto ring, SharedBlock<Ring>::create());
  HMC_TRY(peer.openRing(ring, ours, deadline));
  return std::unique_ptr<Outgoing>(
      new Outgoing(peer.exchange(), std::move(ring), std::move(theirs), std::move(lease)));
}

Outgoing::Outgoing(std::string exchange, SharedBlock<Ring> ring, SharedBlock<ServicePage> theirs,
                   std::shared_ptr<Lease> lease)
    : exchange_(std::move(exchange)),
      ring_(std::move(ring)),
      theirs_(std::move(theirs)),
      lease_(std::move(lease)),
      probe_(kProbe) {}

Outgoing::~Outgoing() {
  // The peer then forgets the ring.
  ring_->closedByOrigin.store(1);
  theirs_->serve.ring();
}

size_t Outgoing::post(std::span<const Op> ops, uint64_t region) {
  std::lock_guard lock(mutex_);
  if (!closed_.ok()) return failAll(ops, closed_);
  size_t taken = 0;
  while (taken < ops.size() && pending_.size() < kMostPending) {
    pending_.push_back(Pending{ops[taken++], region});
  }
  pumpLocked();
  return taken;
}

bool Outgoing::pump() {
  std::lock_guard lock(mutex_);
  return pumpLocked();
}

bool Outgoing::idle() const {
  std::lock_guard lock(mutex_);
  return pending_.empty();
}

void Outgoing::close(const Status& why) {
  std::lock_guard lock(mutex_);
  closeLocked(why);
  pumpLocked();
}

bool Outgoing::pumpLocked() {
  if (pending_.empty()) return false;
  reap();
  closeIfPeerIsGone();
  if (closed_.ok()) {
    issue();
  } else if (fence_.passed()) {
    abandon();
  }
  return finish();
}

// A peer that has left, or died, applies nothing more: there is nothing to wait for.
void Outgoing::closeIfPeerIsGone() {
  if (ring_->closedByTarget.load(std::memory_order_acquire) != 0) {
    closeLocked(error(Code::disconnected, "the peer has closed its end of the link"));
    abandon();
  } else if (probe_.passed()) {
    probe_ = kProbe;
    if (!FdExchange::gone(exchange_)) return;
    closeLocked(error(Code::disconnected, "the peer's process is gone"));
    abandon();
  }
}

// Takes back what the peer has not claimed; the rest is waited for, until the fence.
void Outgoing::closeLocked(const Status& why) {
  if (!closed_.ok()) return;
  closed_ = why;
  fence_ = Deadline(lease_->length());
  ring_->closedByOrigin.store(1);
  for (uint32_t i = 0; i < kSlots; ++i) {
    uint32_t expected = RingSlot::posted;
    if (!uses_[i].pending) continue;
    if (!ring_->slots[i].state.compare_exchange_strong(expected, RingSlot::free)) continue;
    --uses_[i].pending->outstanding;
    uses_[i].pending = nullptr;
  }
  theirs_->serve.ring();
}

void Outgoing::abandon() {
  for (Use& use : uses_) use.pending = nullptr;
  for (Pending& pending : pending_) pending.outstanding = 0;
}

void Outgoing::reap() {
  for (uint32_t i = 0; i < kSlots; ++i) {
    if (!uses_[i].pending) continue;
    if (ring_->slots[i].state.load(std::memory_order_acquire) != RingSlot::done) continue;
    reapSlot(i);
    probe_ = kProbe;
  }
}

void Outgoing::reapSlot(uint32_t index) {
  tsanAcquire();
  RingSlot& slot = ring_->slots[index];
  Use& use = uses_[index];
  Pending& pending = *use.pending;
  const auto outcome = static_cast<Code>(slot.outcome.load(std::memory_order_relaxed));
  Status status = outcome == Code::ok ? Status() : refusal(pending.op, outcome);
  if (status.ok() && pending.op.kind == OpKind::get && closed_.ok()) {
    void* const to = static_cast<char*>(pending.op.local) + use.offset;
    if (!writeGuarded(to, ring_->data[index], use.size))
      status = unusableHere(OpKind::get, pending.op.local, pending.op.size);
  }
  if (pending.error.ok()) pending.error = status;
  --pending.outstanding;
  use.pending = nullptr;
  slot.state.store(RingSlot::free, std::memory_order_relaxed);
}

void Outgoing::issue() {
  bool posted = false;
  auto next = pending_.begin();
  for (uint32_t i = 0; i < kSlots; ++i) {
    if (uses_[i].pending) continue;
    while (next != pending_.end() && (next->issued == next->op.size || !next->error.ok())) ++next;
    if (next == pending_.end()) break;
    issueInto(i, *next);
    posted = true;
  }
  if (posted) theirs_->serve.ring();
}

void Outgoing::issueInto(uint32_t index, Pending& pending) {
  const Op& op = pending.op;
  RingSlot& slot = ring_->slots[index];
  Use use{&pending, pending.issued, std::min(kSlotBytes, op.size - pending.issued)};
  if (op.kind == OpKind::put &&
      !readGuarded(ring_->data[index], static_cast<char*>(op.local) + use.offset, use.size)) {
    pending.error = unusableHere(op.kind, op.local, op.size);
    return;
  }
  slot.kind.store(static_cast<uint32_t>(op.kind), std::memory_order_relaxed);
  slot.size.store(static_cast<uint32_t>(use.size), std::memory_order_relaxed);
  slot.region.store(pending.region, std::memory_order_relaxed);
  slot.offset.store(op.remoteOffset + use.offset, std::memory_order_relaxed);
  tsanRelease();
  slot.state.store(RingSlot::posted, std::memory_order_release);
  pending.issued += use.size;
  ++pending.outstanding;
  uses_[index] = use;
}

bool Outgoing::finish() {
  size_t before = pending_.size();
  std::erase_if(pending_, [this](const Pending& pending) {
    if (pending.outstanding > 0) return false;
    const Status& why = closed_.ok() ? pending.error : closed_;
    if (why.ok() && pending.issued < pending.op.size) return false;
    pending.op.completion->end(why);
    return true;
  });
  return pending_.size() < before;
}

}  // namespace hmc::ipc
