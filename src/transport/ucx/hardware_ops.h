#pragma once

#include <array>
#include <vector>

#include "transport/ucx/requests.h"

namespace hmc::ucx {

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
