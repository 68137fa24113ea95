#pragma once

#include "transport/verbs/address.h"
#include "transport/verbs/completion_queues.h"

namespace hmc::verbs {

// A reliable connection with one queue pair of the peer: creating, connecting and resetting it. Not
// safe from several threads.
class QueuePair {
 public:
  struct Depth {
    int sends = 1;
    int receives = 1;
    int inlined = 0;  // bytes that a send may carry in itself, if the device can
  };

  // May the peer read and write memory through it?
  enum class Serves { nothing, peer };

  // Its completions come from `queues`, which it must not outlive.
  static Result<QueuePair> create(CompletionQueues& queues, const Depth& depth, Serves serves);

  // `to` is a queue pair of the peer's, `peer` the port that it is on. We send from `psn` on.
  Status connect(const QpAddress& to, const PortAddress& peer, uint32_t psn);
  // Nothing is sent or applied any more, and everything that was posted ends.
  void stop();
  // Forgets everything, so that connect() can be called again.
  Status reset();

  ibv_qp* get() const { return handle_.get(); }
  uint32_t number() const { return handle_->qp_num; }
  CompletionQueues& queues() const { return *room_.get_deleter().owner; }
  const Nic& nic() const { return queues().nic(); }
  uint32_t inlined() const { return inlined_; }

 private:
  QueuePair(CompletionQueues::Room room, Handle<ibv_qp> handle, uint32_t inlined, Serves serves)
      : room_(std::move(room)), handle_(std::move(handle)), inlined_(inlined), serves_(serves) {}
  Status toInit();
  Status toReceive(const QpAddress& to, const PortAddress& peer);
  Status toSend(const PortAddress& peer, uint32_t psn);
  Status modify(ibv_qp_attr& attributes, int mask, const char* what);

  CompletionQueues::Room room_;
  Handle<ibv_qp> handle_;
  uint32_t inlined_;
  Serves serves_;
};

// What the peer needs to know about our port.
PortAddress portAddressOf(const Nic& nic);

// For a new connection: packets of an old one that are still under way must not fit.
uint32_t randomPsn();

}  // namespace hmc::verbs
