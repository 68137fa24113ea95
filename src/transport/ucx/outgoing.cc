#include "transport/ucx/outgoing.h"

#include <algorithm>

#include "base/error.h"
#include "transport/ucx/lanes.h"
#include "transport/ucx/registration.h"

namespace hmc::ucx {

namespace {

constexpr uint32_t kTold = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;

bool isLoss(ucs_status_t status) {
  return UCS_IS_ENDPOINT_ERROR(status) || status == UCS_ERR_CONNECTION_RESET ||
         status == UCS_ERR_NOT_CONNECTED || status == UCS_ERR_UNREACHABLE ||
         status == UCS_ERR_CANCELED || status == UCS_ERR_REJECTED;
}

}  // namespace

void Outgoing::List::append(Slot* slot) {
  slot->next = nullptr;
  (first ? last->next : first) = slot;
  last = slot;
}

void Outgoing::List::append(List& others) {
  if (!others.first) return;
  (first ? last->next : first) = others.first;
  last = others.last;
  others = {};
}

Outgoing::Outgoing(Origin& origin, std::chrono::milliseconds fence, std::function<void()> failed)
    : origin_(origin), fence_(fence), failed_(std::move(failed)) {
  for (Batch& batch : batches_) batch.owner = this;
  std::lock_guard lock(origin_.mutex_);
  origin_.all_.push_back(this);
}

Outgoing::~Outgoing() {
  std::lock_guard lock(origin_.mutex_);
  std::erase(origin_.all_, this);
}

Status Outgoing::connect(const Address& peer) {
  std::lock_guard lock(origin_.mutex_);
  if (!why_.ok()) return error(Code::disconnected, "this ucx link is closed");
  if (endpoint_) return error(Code::invalidArgument, "this ucx link is already connected");
  HMC_ASSIGN(endpoint_, origin_.worker_->connect(peer.target, *this));
  words_.how = laneOf(api(), endpoint_);
  words_.slowerBecause = slowerBecause(api(), words_.how);
  peer_ = fmt::format("the peer with UCX {} over {}", peer.version, words_.how);
  slots_ = std::make_unique<Slot[]>(kMostOps);
  for (size_t i = 0; i < kMostOps; ++i) {
    slots_[i] = {nullptr, this, nullptr, std::exchange(free_, &slots_[i])};
  }
  if (origin_.sleeping_) origin_.wake();
  return Status();
}

Result<std::unique_ptr<RemoteMemory>> Outgoing::importKey(const Key& key) {
  ucp_rkey_h handle = nullptr;
  PathWords words;
  {
    std::lock_guard lock(origin_.mutex_);
    if (!why_.ok()) return why_;
    if (!endpoint_) return error(Code::invalidArgument, "this ucx link is not connected yet");
    const ucs_status_t status = api().ucp_ep_rkey_unpack(endpoint_, key.remoteKey.data(), &handle);
    if (status != UCS_OK) return sentence("cannot use the memory of", status);
    words = words_;
  }
  return std::unique_ptr<RemoteMemory>(
      new UcxRemote(api(), origin_.mutex_, key, handle, std::move(words)));
}

Status Outgoing::sentence(const char* what, ucs_status_t status) const {
  return error(isLoss(status) ? Code::disconnected : Code::failed, "UCX {} {} {}: {}",
               api().version, what, peer_, api().text(status));
}

Status Outgoing::check(const Op& op) const {
  const char* what = op.kind == OpKind::put ? "put" : "get";
  if (op.size == 0 || op.size > kLargest) {
    return error(Code::invalidArgument, "{} of {} bytes: one operation moves 1 to {}", what,
                 op.size, kLargest);
  }
  if (!fits(op.remoteOffset, op.size, op.remote->size)) {
    return error(Code::outOfRange,
                 "{} of {} bytes at remote offset {} would pass the end of {} bytes", what, op.size,
                 op.remoteOffset, op.remote->size);
  }
  if (op.kind == OpKind::put && op.remote->access != Access::readWrite) {
    return error(Code::permissionDenied, "put of {} bytes into memory that is read-only", op.size);
  }
  return Status();
}

size_t Outgoing::post(std::span<const Op> ops) {
  std::lock_guard lock(origin_.mutex_);
  size_t accepted = 0;
  while (accepted < ops.size() && start(ops[accepted])) ++accepted;
  if (open_) flush();
  if (origin_.sleeping_) origin_.wake();
  return accepted;
}

// False when there is no room for it.
bool Outgoing::start(const Op& op) {
  Status status = why_;
  if (status.ok()) status = check(op);
  if (!status.ok()) {
    ++origin_.ended_;
    op.completion->fail(status);
    return true;
  }
  if (!endpoint_ || !free_) return false;
  Slot* slot = free_;
  free_ = slot->next;
  slot->completion = op.completion;
  op.kind == OpKind::put ? startPut(op, slot) : startGet(op, slot);
  return true;
}

void Outgoing::startPut(const Op& op, Slot* slot) {
  const auto& remote = static_cast<const UcxRemote&>(*op.remote);
  if (!open_) {
    open_ = &*std::find_if(batches_.begin(), batches_.end(),
                           [](const Batch& batch) { return batch.waiting == 0; });
    open_->waiting = 1;
    open_->flushing = open_->failed = false;
  }
  slot->batch = open_;
  ucp_request_param_t params;
  params.op_attr_mask = kTold | UCP_OP_ATTR_FIELD_MEMH;
  params.cb.send = &Outgoing::putOver;
  params.user_data = slot;
  params.memh = static_cast<const UcxRegistration&>(*op.registration).handle();
  const ucs_status_ptr_t request = api().ucp_put_nbx(
      endpoint_, op.local, op.size, remote.address + op.remoteOffset, remote.handle, &params);
  if (UCS_PTR_IS_ERR(request)) {
    endOne(slot, sentence("cannot put to", UCS_PTR_STATUS(request)));
    return;
  }
  open_->puts.append(slot);
  if (request) {
    ++open_->waiting;
    ++requests_;
  }
}

void Outgoing::startGet(const Op& op, Slot* slot) {
  const auto& remote = static_cast<const UcxRemote&>(*op.remote);
  slot->batch = nullptr;
  ucp_request_param_t params;
  params.op_attr_mask = kTold | UCP_OP_ATTR_FIELD_MEMH;
  params.cb.send = &Outgoing::getOver;
  params.user_data = slot;
  params.memh = static_cast<const UcxRegistration&>(*op.registration).handle();
  const ucs_status_ptr_t request = api().ucp_get_nbx(
      endpoint_, op.local, op.size, remote.address + op.remoteOffset, remote.handle, &params);
  if (UCS_PTR_IS_PTR(request)) {
    ++requests_;
  } else {
    endOne(slot, request ? sentence("cannot get from", UCS_PTR_STATUS(request)) : Status());
  }
}

// Begins the flush of what open_ has, unless enough are under way.
void Outgoing::flush() {
  if (flushes_ == kFlushes) return;
  Batch& batch = *std::exchange(open_, nullptr);
  ucp_request_param_t params;
  params.op_attr_mask = kTold;
  params.cb.send = &Outgoing::flushOver;
  params.user_data = &batch;
  const ucs_status_ptr_t request = api().ucp_ep_flush_nbx(endpoint_, &params);
  batch.flushing = true;
  ++flushes_;
  if (UCS_PTR_IS_PTR(request)) {
    ++requests_;
  } else {
    partOver(batch, UCS_PTR_STATUS(request));
  }
}

void Outgoing::putOver(void* request, ucs_status_t status, void* slot) {
  Batch& batch = *static_cast<Slot*>(slot)->batch;
  batch.owner->api().ucp_request_free(request);
  --batch.owner->requests_;
  batch.owner->partOver(batch, status);
}

void Outgoing::flushOver(void* request, ucs_status_t status, void* which) {
  Batch& batch = *static_cast<Batch*>(which);
  batch.owner->api().ucp_request_free(request);
  --batch.owner->requests_;
  batch.owner->partOver(batch, status);
}

void Outgoing::getOver(void* request, ucs_status_t status, void* which) {
  Slot* slot = static_cast<Slot*>(which);
  Outgoing& self = *slot->owner;
  self.api().ucp_request_free(request);
  --self.requests_;
  if (status != UCS_OK) self.endpointFailed(status);
  self.endOne(slot, status == UCS_OK ? Status() : self.why_);
}

void Outgoing::partOver(Batch& batch, ucs_status_t status) {
  if (status != UCS_OK) {
    batch.failed = true;
    endpointFailed(status);
  }
  if (--batch.waiting == 0) batchOver(batch);
}

void Outgoing::batchOver(Batch& batch) {
  if (batch.flushing) --flushes_;
  List puts = std::exchange(batch.puts, {});
  if (!batch.failed) {
    end(puts, Status());
  } else if (fenced_) {
    end(puts, why_);
  } else {
    held_.append(puts);
  }
  if (open_ && why_.ok()) flush();
}

void Outgoing::endOne(Slot* slot, const Status& status) {
  List list;
  list.append(slot);
  end(list, status);
}

// Neighbours mostly share a completion, which may be gone once it has its last one.
void Outgoing::end(const List& list, const Status& status) {
  for (Slot* slot = list.first; slot;) {
    Completion* completion = slot->completion;
    uint32_t count = 0;
    for (; slot && slot->completion == completion; ++count) {
      Slot* next = slot->next;
      slot->next = std::exchange(free_, slot);
      slot = next;
    }
    origin_.ended_ += count;
    status.ok() ? completion->finish(count) : completion->fail(status, count);
  }
}

// Called by UCX, and for a request that failed before UCX has said so. UCX is in progress(): the
// endpoint itself is dropped by tend().
void Outgoing::endpointFailed(ucs_status_t status) {
  if (!why_.ok()) return;
  begin(sentence("lost", status));
  failed_();
}

void Outgoing::begin(const Status& why) {
  why_ = why;
  fenceAt_ = Origin::Clock::now() + fence_;
  origin_.needsTending_ = true;
  if (!open_) return;
  // No flush will cover these any more.
  Batch& batch = *std::exchange(open_, nullptr);
  batch.failed = true;
  partOver(batch, UCS_OK);
}

// Everything that closing needs and that can be done now. True when there is nothing left.
bool Outgoing::tend() {
  if (why_.ok()) return true;
  if (endpoint_) origin_.worker_->drop(std::exchange(endpoint_, nullptr));
  if (Origin::Clock::now() >= fenceAt_) fenced_ = true;
  if (fenced_) end(std::exchange(held_, {}), why_);
  if (over()) fenceAt_ = Origin::Clock::time_point::max();
  return over();
}

bool Outgoing::over() const {
  return !why_.ok() && !endpoint_ && requests_ == 0 && !held_.first;
}

void Outgoing::close(const Status& why) {
  std::lock_guard lock(origin_.mutex_);
  if (why_.ok()) begin(why);
  tend();
  if (origin_.sleeping_) origin_.wake();
}

void Outgoing::fenced() {
  std::lock_guard lock(origin_.mutex_);
  fenced_ = true;
  tend();
  if (origin_.sleeping_) origin_.wake();
}

void Outgoing::finish(const Status& why) {
  close(why);
  origin_.finish(*this);
}

}  // namespace hmc::ucx
