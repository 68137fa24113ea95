#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "transport/transport.h"
#include "transport/ucx/wire.h"
#include "transport/ucx/worker.h"

namespace hmc::ucx {

class HardwareOps;
class UcxLink;
struct PutBatch;

// UCX's key of a peer's memory, good for one endpoint. Counted: it stays while an operation under
// way needs it, even if the UcxRemote is gone. The progress mutex guards it.
struct RemoteKey {
  const Api& api;
  const ucp_rkey_h handle;
  size_t users;

  static void release(RemoteKey*& key);
};

// A peer's memory, as one link reaches it.
class UcxRemote final : public RemoteMemory {
 public:
  UcxRemote(UcxLink& link, Key from, PathTaken path)
      : RemoteMemory(from.size, from.access, {}, std::move(path)),
        region(from.region),
        address(from.address),
        packed(std::move(from.hardware)),
        link_(link) {}
  // The keys of an endpoint must go before its worker does, so the link knows them.
  ~UcxRemote() override;

  const uint64_t region;
  const uint64_t address;
  // For HardwareOps: UCX's key as it came, empty where only messages reach the memory; and the key
  // of the current endpoint.
  mutable std::string packed;
  mutable RemoteKey* key = nullptr;

 private:
  UcxLink& link_;
};

// One operation under way.
struct RequestSlot {
  Completion* completion;  // null when the slot is free
  UcxLink* owner;
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
  Request header;  // as it travels
};

// The operations of one link under way. The progress mutex guards it.
class RequestSlots {
 public:
  // Counts every operation that ends in `ended`.
  explicit RequestSlots(uint64_t& ended) : ended_(ended) {}

  // Allocates the slots, when called first.
  void create(UcxLink& owner);
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

// Puts by hardware that one flush covers.
struct PutBatch {
  HardwareOps* owner = nullptr;
  RequestSlot* first = nullptr;
  RequestSlot* last = nullptr;
  size_t bytes = 0;
  uint32_t waiting = 0;  // requests of UCX, and one for the flush
};

// UCX's own put, get and flush, on lanes where hardware does them, and the keys that they need. A
// get is done when UCX says so, a put when a flush that covers it is. The progress mutex guards it.
class HardwareOps {
 public:
  HardwareOps(const Api& api, RequestSlots& slots, EndpointOwner& owner)
      : api_(api), slots_(slots), owner_(owner) {}

  // From now on over this endpoint, which has a lane of hardware. The one before it is gone.
  void use(ucp_ep_h endpoint);
  // Starts nothing over the endpoint any more.
  void stop() { endpoint_ = nullptr; }
  // Before the endpoint's worker goes.
  void releaseKeys();

  void add(const UcxRemote& remote) { remotes_.push_back(&remote); }
  void remove(const UcxRemote& remote);
  // The peer has unregistered that memory: messages serve it, because each failure by hardware
  // costs a path.
  void leaveToMessages(uint64_t region);
  // The key for operations on that memory; null where messages have to serve.
  RemoteKey* keyOf(const UcxRemote& remote);

  // slot.key is set. False when UCX cannot even begin (it may lock no more memory, or our own was
  // unmapped): then it has to go as a message.
  bool start(RequestSlot& slot, uint64_t address);
  // Starts a flush of the puts that none covers yet, unless enough are under way.
  void flush();

 private:
  // More flushes at once bring nothing: what is posted meanwhile shares the next one.
  static constexpr size_t kMostFlushes = 8;

  static void onPut(void* request, ucs_status_t status, void* slot);
  static void onGet(void* request, ucs_status_t status, void* slot);
  static void onFlush(void* request, ucs_status_t status, void* batch);
  // Frees the request. True when it went well; else the owner knows.
  bool ended(void* request, ucs_status_t status);
  void addToBatch(RequestSlot& slot, bool pending);
  void requestDone(PutBatch& batch);

  const Api& api_;
  RequestSlots& slots_;
  EndpointOwner& owner_;
  ucp_ep_h endpoint_ = nullptr;  // null: messages serve
  size_t flushes_ = 0;           // under way
  std::array<PutBatch, kMostFlushes + 1> batches_;
  PutBatch* open_ = nullptr;               // takes the puts that no flush covers yet
  std::vector<const UcxRemote*> remotes_;  // that hardware may reach
};

}  // namespace hmc::ucx
