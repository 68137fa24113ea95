#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "transport/verbs/nic.h"

namespace hmc::verbs {

// The completion queues of one NIC for one purpose, behind one descriptor. There are as many as the
// queue pairs need: a queue that overflows would lose completions. Safe from any thread.
class CompletionQueues {
 public:
  static Result<std::unique_ptr<CompletionQueues>> create(const Nic& nic);
  const Nic& nic() const { return nic_; }

  struct Release {
    CompletionQueues* owner;
    int entries;
    void operator()(ibv_cq* queue) const { owner->release(queue, entries); }
  };
  // A queue with room for so many more entries, until this goes.
  using Room = std::unique_ptr<ibv_cq, Release>;
  Result<Room> reserve(int entries);

  // Calls handle(const ibv_wc&) for every completion, with the mutex held: one thread at a time, in
  // order. Answers how many there were.
  template <class Handle>
  size_t poll(Handle&& handle) {
    std::lock_guard lock(mutex_);
    size_t count = 0;
    for (const Queue& queue : queues_) {
      ibv_wc ended[kBatch];
      for (int got = kBatch; got == kBatch;) {
        got = ibv_poll_cq(queue.handle.get(), kBatch, ended);
        for (int i = 0; i < got; ++i) handle(ended[i]);
        count += static_cast<size_t>(got > 0 ? got : 0);
      }
    }
    return count;
  }

  // No completion is handled while the lock is held.
  std::unique_lock<std::mutex> pause() { return std::unique_lock(mutex_); }

  // Keeps alive what a completion may still point to.
  void keep(std::shared_ptr<void> pointedTo);

  // From now on the descriptor becomes readable when something completes. What completed before is
  // not announced: poll() once more.
  void arm();
  // Clears the descriptor.
  void acknowledge();
  int fd() const { return channel_->fd; }

 private:
  static constexpr int kBatch = 16;
  struct Queue {
    Handle<ibv_cq> handle;
    int free;
  };
  CompletionQueues(const Nic& nic, Handle<ibv_comp_channel> channel)
      : nic_(nic), channel_(std::move(channel)) {}
  void release(ibv_cq* queue, int entries);

  const Nic& nic_;
  const Handle<ibv_comp_channel> channel_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<void>> kept_;  // guarded by mutex_
  std::vector<Queue> queues_;                // guarded by mutex_
};

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
