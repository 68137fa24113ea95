#include "transport/ucx/requests.h"

#include <algorithm>

namespace hmc::ucx {

namespace {

constexpr size_t kMostOps = 1024;
constexpr size_t kMostBytes = size_t{16} << 20;

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

void RemoteKey::release(RemoteKey*& key) {
  RemoteKey* const used = std::exchange(key, nullptr);
  if (!used || --used->users > 0) return;
  used->api.ucp_rkey_destroy(used->handle);
  delete used;
}

void RequestSlots::create(UcxLink& owner) {
  if (!slots_.empty()) return;
  slots_.resize(kMostOps);
  for (RequestSlot& slot : slots_) {
    slot.owner = &owner;
    slot.next = std::exchange(free_, &slot);
  }
}

bool RequestSlots::hasRoom(size_t bytes) const {
  return free_ && (used_ == 0 || bytes_ + bytes <= kMostBytes);
}

RequestSlot& RequestSlots::take(const Op& op) {
  RequestSlot& slot = *std::exchange(free_, free_->next);
  slot.completion = op.completion;
  slot.kind = op.kind;
  slot.local = op.local;
  slot.size = op.size;
  slot.region = static_cast<const UcxRemote&>(*op.remote).region;
  slot.offset = op.remoteOffset;
  slot.waiting = 0;
  slot.resent = false;
  slot.batch = nullptr;
  slot.key = nullptr;
  ++used_;
  bytes_ += op.size;
  return slot;
}

// Answers the slot that followed it.
RequestSlot* RequestSlots::release(RequestSlot& slot) {
  slot.completion = nullptr;
  RemoteKey::release(slot.key);
  --used_;
  bytes_ -= slot.size;
  resent_ -= slot.resent ? 1 : 0;
  return std::exchange(slot.next, std::exchange(free_, &slot));
}

void RequestSlots::end(RequestSlot& slot, const Status& status) {
  Completion* completion = slot.completion;
  release(slot);
  ++ended_;
  status.ok() ? completion->finish() : completion->fail(status);
}

void RequestSlots::finishChain(RequestSlot* slot) {
  while (slot) {
    // Neighbours mostly share a completion, which may be gone once it has its last one.
    Completion* completion = slot->completion;
    uint32_t count = 0;
    for (; slot && slot->completion == completion; ++count) slot = release(*slot);
    ended_ += count;
    completion->finish(count);
  }
}

size_t RequestSlots::markResent() {
  for (RequestSlot& slot : slots_) slot.resent = slot.completion != nullptr;
  return resent_ = used_;
}

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

bool HardwareOps::start(RequestSlot& slot, uint64_t address) {
  slot.hardware = this;
  const bool put = slot.kind == OpKind::put;
  const auto params = paramsOf(put ? &HardwareOps::onPut : &HardwareOps::onGet, &slot);
  const ucp_rkey_h key = slot.key->handle;
  const ucs_status_ptr_t request =
      put ? api_.ucp_put_nbx(endpoint_, slot.local, slot.size, address, key, &params)
          : api_.ucp_get_nbx(endpoint_, slot.local, slot.size, address, key, &params);
  if (UCS_PTR_IS_ERR(request)) return false;
  if (put) {
    addToBatch(slot, request != nullptr);
  } else if (!request) {
    slots_.end(slot, Status());
  }
  return true;
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

void HardwareOps::flush() {
  if (!open_ || !endpoint_ || flushes_ == kMostFlushes) return;
  PutBatch& batch = *std::exchange(open_, nullptr);
  ++flushes_;
  const auto params = paramsOf(&HardwareOps::onFlush, &batch);
  const ucs_status_ptr_t request = api_.ucp_ep_flush_nbx(endpoint_, &params);
  if (UCS_PTR_IS_ERR(request)) {
    owner_.endpointFailed(UCS_PTR_STATUS(request));
  } else if (!request) {
    requestDone(batch);
  }
}

bool HardwareOps::ended(void* request, ucs_status_t status) {
  api_.ucp_request_free(request);
  if (status != UCS_OK) owner_.endpointFailed(status);
  return status == UCS_OK;
}

void HardwareOps::onPut(void* request, ucs_status_t status, void* which) {
  auto& slot = *static_cast<RequestSlot*>(which);
  if (slot.hardware->ended(request, status)) slot.hardware->requestDone(*slot.batch);
}

void HardwareOps::onFlush(void* request, ucs_status_t status, void* which) {
  auto& batch = *static_cast<PutBatch*>(which);
  if (batch.owner->ended(request, status)) batch.owner->requestDone(batch);
}

void HardwareOps::onGet(void* request, ucs_status_t status, void* which) {
  auto& slot = *static_cast<RequestSlot*>(which);
  if (slot.hardware->ended(request, status)) slot.hardware->slots_.end(slot, Status());
}

void HardwareOps::requestDone(PutBatch& batch) {
  if (--batch.waiting > 0) return;
  --flushes_;
  slots_.finishChain(std::exchange(batch.first, nullptr));
  flush();
}

}  // namespace hmc::ucx
