#include <algorithm>

#include "base/error.h"
#include "transport/check.h"
#include "transport/ucx/outgoing.h"

// What becomes of an operation once it is posted.
namespace hmc::ucx {

namespace {

constexpr uint32_t kTold = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;

// No other field is read by UCX than those that the mask names.
ucp_request_param_t paramsOf(void* subject, ucp_send_nbx_callback_t told, const Op& op) {
  ucp_request_param_t params;
  params.op_attr_mask = kTold | UCP_OP_ATTR_FIELD_MEMH;
  params.cb.send = told;
  params.user_data = subject;
  params.memh = static_cast<const UcxRegistration&>(*op.registration).handle();
  return params;
}

}  // namespace

size_t Outgoing::post(std::span<const Op> ops) {
  std::lock_guard lock(origin_.mutex_);
  size_t accepted = 0;
  while (accepted < ops.size() && start(ops[accepted])) ++accepted;
  if (open_) flush();
  if (path_ && !ops.empty()) origin_.rouse(*this);
  origin_.wakeIfAsleep();
  return accepted;
}

// False when there is no room for it.
bool Outgoing::start(const Op& op) {
  Status status = why_;
  if (status.ok()) status = checkOp(op, kLargest);
  if (!status.ok()) {
    op.completion->fail(status);
    return true;
  }
  if (!free_ || !path_ || !path_->up() || (used_ > 0 && underWay_ + op.size > kMostBytes))
    return false;
  Slot* slot = std::exchange(free_, free_->next);
  slot->completion = op.completion;
  slot->kind = op.kind;
  slot->batch = nullptr;
  slot->local = op.local;
  slot->size = op.size;
  ++used_;
  underWay_ += op.size;
  if (!static_cast<const UcxRemote&>(*op.remote).handle) {
    startMessage(op, slot);
  } else if (op.kind == OpKind::put) {
    startPut(op, slot);
  } else {
    startGet(op, slot);
  }
  return true;
}

void Outgoing::startMessage(const Op& op, Slot* slot) {
  const bool put = op.kind == OpKind::put;
  const auto kind = put ? RequestKind::put : RequestKind::get;
  Request{static_cast<uint64_t>(kind), static_cast<uint64_t>(slot - slots_.data()),
          static_cast<const UcxRemote&>(*op.remote).area, op.remoteOffset, op.size}
      .pack(slot->header);
  slot->waiting = 1;
  slot->carried = {static_cast<const char*>(op.local), put ? op.size : 0};
  const ucs_status_ptr_t request =
      path_->send(slot->header, Request::kSize, slot->carried, &Outgoing::sent, slot);
  if (UCS_PTR_IS_ERR(request)) {
    endOne(slot, sentence("cannot send to", UCS_PTR_STATUS(request)));
  } else if (request) {
    ++slot->waiting;
  }
}

// What fails keeps its slot until the link is closed for it.
void Outgoing::sent(void* request, ucs_status_t status, void* which) {
  Slot* slot = static_cast<Slot*>(which);
  Outgoing& self = *slot->owner;
  self.api().ucp_request_free(request);
  if (status != UCS_OK) return self.lost(status);
  self.messageOver(slot);
}

void Outgoing::replied(const Reply& reply, const void* data, size_t size) {
  Slot* slot = reply.id < slots_.size() ? &slots_[reply.id] : nullptr;
  const bool due = slot && slot->completion && slot->waiting > 0;
  if (!why_.ok()) return;
  const size_t expected = due && slot->kind == OpKind::get ? slot->size : 0;
  if (!due || (reply.code == 0 && size != expected) || size > kLargest) {
    begin(error(Code::disconnected, "{} broke the protocol with a reply of {} bytes", who_, size));
    return failed_();
  }
  if (reply.code != 0) {
    const bool known = reply.code <= static_cast<uint64_t>(Code::failed);
    const Code code = known ? static_cast<Code>(reply.code) : Code::failed;
    slot->refusal = Status(code, std::string(static_cast<const char*>(data), size));
  } else if (size > 0) {
    std::memcpy(slot->local, data, size);
  }
  messageOver(slot);
}

void Outgoing::messageOver(Slot* slot) {
  if (--slot->waiting == 0) endOne(slot, std::exchange(slot->refusal, Status()));
}

void Outgoing::startPut(const Op& op, Slot* slot) {
  const auto& remote = static_cast<const UcxRemote&>(*op.remote);
  if (!open_) openBatch();
  slot->batch = open_;
  const auto params = paramsOf(slot, &Outgoing::putOver, op);
  const ucs_status_ptr_t request =
      api().ucp_put_nbx(path_->endpoint(), op.local, op.size, remote.address + op.remoteOffset,
                        remote.handle, &params);
  if (UCS_PTR_IS_ERR(request)) {
    return endOne(slot, sentence("cannot put to", UCS_PTR_STATUS(request)));
  }
  slot->next = nullptr;
  (open_->first ? open_->last->next : open_->first) = slot;
  open_->last = slot;
  if (request) ++open_->waiting;
}

void Outgoing::startGet(const Op& op, Slot* slot) {
  const auto& remote = static_cast<const UcxRemote&>(*op.remote);
  const auto params = paramsOf(slot, &Outgoing::getOver, op);
  const ucs_status_ptr_t request =
      api().ucp_get_nbx(path_->endpoint(), op.local, op.size, remote.address + op.remoteOffset,
                        remote.handle, &params);
  if (UCS_PTR_IS_PTR(request)) return;
  endOne(slot, request ? sentence("cannot get from", UCS_PTR_STATUS(request)) : Status());
}

// There is always one: no more than all but one of them are being flushed.
void Outgoing::openBatch() {
  open_ = &*std::find_if(batches_.begin(), batches_.end(),
                         [](const Batch& batch) { return batch.waiting == 0; });
  open_->waiting = 1;
}

// Begins the flush of what open_ has, unless enough are under way.
void Outgoing::flush() {
  if (flushes_ == kFlushes) return;
  Batch& batch = *std::exchange(open_, nullptr);
  ucp_request_param_t params;
  params.op_attr_mask = kTold;
  params.cb.send = &Outgoing::flushOver;
  params.user_data = &batch;
  ++flushes_;
  const ucs_status_ptr_t request = api().ucp_ep_flush_nbx(path_->endpoint(), &params);
  if (UCS_PTR_IS_ERR(request)) {
    lost(UCS_PTR_STATUS(request));
  } else if (!request) {
    partOver(batch);
  }
}

void Outgoing::putOver(void* request, ucs_status_t status, void* which) {
  Batch& batch = *static_cast<Slot*>(which)->batch;
  Outgoing& self = *batch.owner;
  self.api().ucp_request_free(request);
  if (status != UCS_OK) return self.lost(status);
  self.partOver(batch);
}

void Outgoing::flushOver(void* request, ucs_status_t status, void* which) {
  Batch& batch = *static_cast<Batch*>(which);
  Outgoing& self = *batch.owner;
  self.api().ucp_request_free(request);
  if (status != UCS_OK) return self.lost(status);
  self.partOver(batch);
}

void Outgoing::getOver(void* request, ucs_status_t status, void* which) {
  Slot* slot = static_cast<Slot*>(which);
  Outgoing& self = *slot->owner;
  self.api().ucp_request_free(request);
  if (status != UCS_OK) return self.lost(status);
  self.endOne(slot, Status());
}

void Outgoing::partOver(Batch& batch) {
  if (--batch.waiting > 0) return;
  --flushes_;
  // Neighbours mostly share a completion, which may be gone once it has its last one.
  for (Slot* slot = std::exchange(batch.first, nullptr); slot;) {
    Completion* completion = slot->completion;
    uint32_t count = 0;
    for (; slot && slot->completion == completion; ++count) slot = release(slot);
    origin_.ended_ += count;
    completion->finish(count);
  }
  if (open_ && why_.ok()) flush();
}

// Answers the slot that followed it.
Outgoing::Slot* Outgoing::release(Slot* slot) {
  slot->completion = nullptr;
  --used_;
  underWay_ -= slot->size;
  return std::exchange(slot->next, std::exchange(free_, slot));
}

void Outgoing::endOne(Slot* slot, const Status& status) {
  Completion* completion = slot->completion;
  release(slot);
  ++origin_.ended_;
  status.ok() ? completion->finish() : completion->fail(status);
}

}  // namespace hmc::ucx
