#pragma once

#include <vector>

#include "transport/ucx/remote.h"
#include "transport/ucx/wire.h"
#include "transport/ucx/worker.h"

namespace hmc::ucx {

class Outgoing;
class HardwareOps;
struct PutBatch;

// One operation under way.
struct RequestSlot {
  Completion* completion;  // null when the slot is free
  Outgoing* owner;
  RequestSlot* next;  // in the batch, or of the free ones
  OpKind kind;
  uint8_t waiting;  // by message: for UCX to have sent it, and for the reply
  bool resent;
  HardwareOps* hardware;
  PutBatch* batch;  // of a put by hardware
  RemoteKey* key;   // by hardware
  void* local;
  size_t size;
  uint64_t region;
  uint64_t offset;
  Bytes carried;
  Status refusal;  // the peer's
  char header[Request::kSize];
};

// The operations of one link under way. The progress mutex guards it.
class RequestSlots {
 public:
  // Counts every operation that ends in `ended`.
  explicit RequestSlots(uint64_t& ended) : ended_(ended) {}

  // Allocates the slots, when called first.
  void create(Outgoing& owner);
  bool hasRoom(size_t bytes) const;
  // A slot for this operation, of which there is room.
  RequestSlot& take(const Op& op);
  // Null for a number that no operation has.
  RequestSlot* find(uint64_t id) { return id < slots_.size() ? &slots_[id] : nullptr; }
  uint64_t idOf(const RequestSlot& slot) const {
    return static_cast<uint64_t>(&slot - slots_.data());
  }

  void end(RequestSlot& slot, const Status& status);
  // Ends `first` and those linked to it, all of which went well.
  void finishChain(RequestSlot* first);

  // All that are under way are sent again. Answers how many.
  size_t markResent();
  size_t used() const { return used_; }
  size_t resent() const { return resent_; }
  std::vector<RequestSlot>& all() { return slots_; }

 private:
  RequestSlot* release(RequestSlot& slot);

  uint64_t& ended_;
  std::vector<RequestSlot> slots_;
  RequestSlot* free_ = nullptr;
  size_t used_ = 0;    // slots
  size_t bytes_ = 0;   // under way
  size_t resent_ = 0;  // of the used ones
};

}  // namespace hmc::ucx
