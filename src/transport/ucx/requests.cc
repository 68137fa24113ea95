#include "transport/ucx/requests.h"

namespace hmc::ucx {

namespace {

constexpr size_t kMostOps = 1024;
constexpr size_t kMostBytes = size_t{16} << 20;

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

}  // namespace hmc::ucx
