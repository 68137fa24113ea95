#pragma once

#include "transport/verbs/address.h"
#include "transport/verbs/nic.h"

namespace hmc::verbs {

// A reliable connection with one queue pair of the peer. Creating, connecting and resetting; who
// posts to it is another matter. Not safe from several threads.
class QueuePair {
 public:
  struct Depth {
    int sends = 1;
    int receives = 1;
    int inlined = 0;  // bytes that a send may carry in itself, at least asked for
  };

  // May the peer read and write memory through it?
  enum class Serves { nothing, peer };

  static Result<QueuePair> create(const Nic& nic, ibv_cq* queue, const Depth& depth, Serves serves);

  // The peer's queue pair `to`, which lies at `place`, sends packets from to.firstPacket on; we
  // send from `firstPacket` on.
  Status connect(const Address::Pair& to, const Address::Place& place, uint32_t firstPacket);
  // Nothing is sent or applied any more, and everything that was posted ends.
  void stop();
  // Forgets everything, so that connect() can be called again.
  Status reset();

  ibv_qp* get() const { return handle_.get(); }
  uint32_t number() const { return handle_->qp_num; }
  const Nic& nic() const { return *nic_; }
  uint32_t inlined() const { return inlined_; }

 private:
  QueuePair(const Nic& nic, Handle<ibv_qp> handle, uint32_t inlined, Serves serves)
      : nic_(&nic), handle_(std::move(handle)), inlined_(inlined), serves_(serves) {}
  Status toInit();
  Status toReceive(const Address::Pair& to, const Address::Place& place);
  Status toSend(const Address::Place& place, uint32_t firstPacket);
  Status modify(ibv_qp_attr& attributes, int mask, const char* what);

  const Nic* nic_;
  Handle<ibv_qp> handle_;
  uint32_t inlined_;
  Serves serves_;
};

// How we are known at the other end.
Address::Place placeOf(const Nic& nic);

// Where a new connection's packets start: not where an old one's could still be.
uint32_t randomPacketNumber();

}  // namespace hmc::verbs
