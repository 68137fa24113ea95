#include <algorithm>

#include "transport/ucx/outgoing.h"

// What UCX's own put, get and flush do, on lanes where hardware does it.
namespace hmc::ucx {

namespace {

constexpr uint32_t kTold = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
// A flush for every so many, so that a long row of puts ends little by little.
constexpr size_t kFlushed = size_t{2} << 20;

// No other field is read by UCX than those that the mask names.
ucp_request_param_t paramsOf(ucp_send_nbx_callback_t told, void* subject) {
  ucp_request_param_t params;
  params.op_attr_mask = kTold;
  params.cb.send = told;
  params.user_data = subject;
  return params;
}

}  // namespace

// None where messages serve.
RemoteKey* Outgoing::keyOf(const UcxRemote& remote) {
  const bool usable = hardware_ && stage_ == Stage::whole && repeats_ == 0;
  if (remote.key || remote.packed.empty() || !usable) return remote.key;
  ucp_rkey_h handle = nullptr;
  if (api().ucp_ep_rkey_unpack(path_->endpoint(), remote.packed.data(), &handle) != UCS_OK) {
    remote.packed.clear();
    return nullptr;
  }
  return remote.key = new RemoteKey{handle, 1};
}

void Outgoing::letGo(RemoteKey*& key) {
  RemoteKey* const used = std::exchange(key, nullptr);
  if (!used || --used->users > 0) return;
  api().ucp_rkey_destroy(used->handle);
  delete used;
}

void Outgoing::forget(const UcxRemote& remote) {
  std::lock_guard lock(origin_.mutex_);
  if (std::erase(remotes_, &remote) > 0) letGo(remote.key);
}

// The peer has unregistered it: by hardware every further operation would cost a path.
void Outgoing::leaveToMessages(uint64_t area) {
  for (const UcxRemote* remote : remotes_) {
    if (remote->area == area) remote->packed.clear();
  }
}

// What UCX cannot even begin (it may lock no more memory, or our own was unmapped) goes as a
// message.
void Outgoing::put(Slot* slot, uint64_t address) {
  const auto params = paramsOf(&Outgoing::putOver, slot);
  const ucs_status_ptr_t request = api().ucp_put_nbx(path_->endpoint(), slot->local, slot->size,
                                                     address, slot->key->handle, &params);
  if (UCS_PTR_IS_ERR(request)) return send(slot);
  if (!open_) {
    // There is always one: no more than all but one of them are being flushed.
    open_ = &*std::find_if(batches_.begin(), batches_.end(),
                           [](const Batch& batch) { return batch.waiting == 0; });
    *open_ = {this, nullptr, nullptr, 0, 1};
  }
  slot->batch = open_;
  slot->next = nullptr;
  (open_->first ? open_->last->next : open_->first) = slot;
  open_->last = slot;
  open_->bytes += slot->size;
  if (request) ++open_->waiting;
  if (open_->bytes >= kFlushed) flush();
}

void Outgoing::get(Slot* slot, uint64_t address) {
  const auto params = paramsOf(&Outgoing::getOver, slot);
  const ucs_status_ptr_t request = api().ucp_get_nbx(path_->endpoint(), slot->local, slot->size,
                                                     address, slot->key->handle, &params);
  if (UCS_PTR_IS_PTR(request)) return;
  request ? send(slot) : endOne(slot, Status());
}

// Begins the flush of what open_ has, unless enough are under way.
void Outgoing::flush() {
  if (flushes_ == kFlushes) return;
  Batch& batch = *std::exchange(open_, nullptr);
  ++flushes_;
  const auto params = paramsOf(&Outgoing::flushOver, &batch);
  const ucs_status_ptr_t request = api().ucp_ep_flush_nbx(path_->endpoint(), &params);
  if (UCS_PTR_IS_ERR(request)) {
    lost(UCS_PTR_STATUS(request));
  } else if (!request) {
    partOver(batch);
  }
}

void Outgoing::putOver(void* request, ucs_status_t status, void* which) {
  Slot* slot = static_cast<Slot*>(which);
  Outgoing& self = *slot->owner;
  self.api().ucp_request_free(request);
  if (status != UCS_OK) return self.lost(status);
  self.partOver(*slot->batch);
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
  if (open_ && stage_ == Stage::whole) flush();
}

}  // namespace hmc::ucx
