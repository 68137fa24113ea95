#include "transport/ucx/hardware_ops.h"

#include <algorithm>

namespace hmc::ucx {

namespace {

// A flush for every so many bytes, so that a long row of puts does not end all at once.
constexpr size_t kFlushEvery = size_t{2} << 20;

// UCX reads only the fields that the mask names.
ucp_request_param_t paramsOf(ucp_send_nbx_callback_t callback, void* argument) {
  ucp_request_param_t params;
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.send = callback;
  params.user_data = argument;
  return params;
}

}  // namespace

void HardwareOps::use(ucp_ep_h endpoint) {
  endpoint_ = endpoint;
  open_ = nullptr;
  flushes_ = 0;
  batches_ = {};
}

void HardwareOps::releaseKeys() {
  for (RequestSlot& slot : slots_.all()) RemoteKey::release(slot.key);
  for (const UcxRemote* remote : remotes_) RemoteKey::release(remote->key);
}

RemoteKey* HardwareOps::keyOf(const UcxRemote& remote) {
  // What is resent goes by message, so that the peer itself says which operation it refuses.
  const bool usable = endpoint_ && slots_.resent() == 0;
  if (remote.key || remote.packed.empty() || !usable) return remote.key;
  ucp_rkey_h handle = nullptr;
  if (api_.ucp_ep_rkey_unpack(endpoint_, remote.packed.data(), &handle) != UCS_OK) {
    remote.packed.clear();
    return nullptr;
  }
  return remote.key = new RemoteKey{api_, handle, 1};
}

void HardwareOps::remove(const UcxRemote& remote) {
  if (std::erase(remotes_, &remote) > 0) RemoteKey::release(remote.key);
}

void HardwareOps::leaveToMessages(uint64_t region) {
  for (const UcxRemote* remote : remotes_) {
    if (remote->region == region) remote->packed.clear();
  }
}

void HardwareOps::start(RequestSlot& slot, uint64_t address) {
  slot.hardware = this;
  slot.kind == OpKind::put ? put(slot, address) : get(slot, address);
}

// What UCX cannot even begin (it may lock no more memory, or our own was unmapped) goes as a
// message.
void HardwareOps::put(RequestSlot& slot, uint64_t address) {
  const auto params = paramsOf(&HardwareOps::onPut, &slot);
  const ucs_status_ptr_t request =
      api_.ucp_put_nbx(endpoint_, slot.local, slot.size, address, slot.key->handle, &params);
  if (UCS_PTR_IS_ERR(request)) return owner_.sendAsMessage(slot);
  addToBatch(slot, request != nullptr);
}

void HardwareOps::addToBatch(RequestSlot& slot, bool pending) {
  if (!open_) {
    // One is free: at most all but one of them are being flushed.
    open_ = &*std::find_if(batches_.begin(), batches_.end(),
                           [](const PutBatch& batch) { return batch.waiting == 0; });
    *open_ = {this, nullptr, nullptr, 0, 1};
  }
  slot.batch = open_;
  slot.next = nullptr;
  (open_->first ? open_->last->next : open_->first) = &slot;
  open_->last = &slot;
  open_->bytes += slot.size;
  if (pending) ++open_->waiting;
  if (open_->bytes >= kFlushEvery) flush();
}

void HardwareOps::get(RequestSlot& slot, uint64_t address) {
  const auto params = paramsOf(&HardwareOps::onGet, &slot);
  const ucs_status_ptr_t request =
      api_.ucp_get_nbx(endpoint_, slot.local, slot.size, address, slot.key->handle, &params);
  if (UCS_PTR_IS_PTR(request)) return;
  request ? owner_.sendAsMessage(slot) : slots_.end(slot, Status());
}

void HardwareOps::flush() {
  if (!open_ || !endpoint_ || flushes_ == kMostFlushes) return;
  PutBatch& batch = *std::exchange(open_, nullptr);
  ++flushes_;
  const auto params = paramsOf(&HardwareOps::onFlush, &batch);
  const ucs_status_ptr_t request = api_.ucp_ep_flush_nbx(endpoint_, &params);
  if (UCS_PTR_IS_ERR(request)) {
    owner_.lost(UCS_PTR_STATUS(request));
  } else if (!request) {
    requestDone(batch);
  }
}

void HardwareOps::onPut(void* request, ucs_status_t status, void* which) {
  auto& slot = *static_cast<RequestSlot*>(which);
  HardwareOps& self = *slot.hardware;
  self.api_.ucp_request_free(request);
  status == UCS_OK ? self.requestDone(*slot.batch) : self.owner_.lost(status);
}

void HardwareOps::onFlush(void* request, ucs_status_t status, void* which) {
  auto& batch = *static_cast<PutBatch*>(which);
  HardwareOps& self = *batch.owner;
  self.api_.ucp_request_free(request);
  status == UCS_OK ? self.requestDone(batch) : self.owner_.lost(status);
}

void HardwareOps::onGet(void* request, ucs_status_t status, void* which) {
  auto& slot = *static_cast<RequestSlot*>(which);
  HardwareOps& self = *slot.hardware;
  self.api_.ucp_request_free(request);
  status == UCS_OK ? self.slots_.end(slot, Status()) : self.owner_.lost(status);
}

void HardwareOps::requestDone(PutBatch& batch) {
  if (--batch.waiting > 0) return;
  --flushes_;
  slots_.finishChain(std::exchange(batch.first, nullptr));
  flush();
}

}  // namespace hmc::ucx
