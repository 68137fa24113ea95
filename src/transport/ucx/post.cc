#include "base/error.h"
#include "transport/check.h"
#include "transport/ucx/outgoing.h"

// What becomes of an operation once it is posted.
namespace hmc::ucx {

size_t Outgoing::post(std::span<const Op> ops) {
  std::lock_guard lock(origin_.mutex_);
  size_t accepted = 0;
  while (accepted < ops.size() && start(ops[accepted])) ++accepted;
  if (open_ && stage_ == Stage::whole) flush();
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
  if (!free_ || stage_ != Stage::whole || !path_ || !path_->up() ||
      (used_ > 0 && underWay_ + op.size > kMostBytes)) {
    return false;
  }
  const auto& remote = static_cast<const UcxRemote&>(*op.remote);
  Slot* slot = std::exchange(free_, free_->next);
  slot->completion = op.completion;
  slot->kind = op.kind;
  slot->local = op.local;
  slot->size = op.size;
  slot->area = remote.area;
  slot->offset = op.remoteOffset;
  slot->waiting = 0;
  slot->again = false;
  slot->batch = nullptr;
  slot->key = keyOf(remote);
  ++used_;
  underWay_ += op.size;
  if (!slot->key) {
    send(slot);
    return true;
  }
  ++slot->key->users;
  const uint64_t address = remote.address + op.remoteOffset;
  op.kind == OpKind::put ? put(slot, address) : get(slot, address);
  return true;
}

void Outgoing::send(Slot* slot) {
  const bool put = slot->kind == OpKind::put;
  const auto kind = put ? RequestKind::put : RequestKind::get;
  Request{static_cast<uint64_t>(kind), static_cast<uint64_t>(slot - slots_.data()), slot->area,
          slot->offset, slot->size}
      .pack(slot->header);
  slot->waiting = 1;
  slot->refusal = Status();
  slot->carried = {static_cast<const char*>(slot->local), put ? slot->size : 0, inPlace_};
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
  const bool done = status == UCS_OK;
  done || !self.path_ ? self.api().ucp_request_free(request) : self.path_->keep(request);
  done ? self.partOver(slot) : self.lost(status);
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
    if (slot->again && code == Code::notFound) leaveToMessages(slot->area);
  } else if (size > 0) {
    row_.copy(slot->local, data, size);
  }
  partOver(slot);
}

void Outgoing::partOver(Slot* slot) {
  if (--slot->waiting == 0) endOne(slot, std::exchange(slot->refusal, Status()));
}

// Answers the slot that followed it.
Outgoing::Slot* Outgoing::release(Slot* slot) {
  slot->completion = nullptr;
  letGo(slot->key);
  --used_;
  underWay_ -= slot->size;
  repeats_ -= slot->again ? 1 : 0;
  return std::exchange(slot->next, std::exchange(free_, slot));
}

void Outgoing::endOne(Slot* slot, const Status& status) {
  Completion* completion = slot->completion;
  release(slot);
  ++origin_.ended_;
  status.ok() ? completion->finish() : completion->fail(status);
}

}  // namespace hmc::ucx
