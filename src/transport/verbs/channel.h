#pragma once

#include <atomic>
#include <span>
#include <vector>

#include "transport/transport.h"
#include "transport/verbs/completion_queues.h"
#include "transport/verbs/memory.h"
#include "transport/verbs/queue_pair.h"

namespace hmc::verbs {

// One queue pair that sends our operations, and those that are under way on it. Two sides use it,
// each under a mutex of its own: posting holds the link's, handling completions the completion
// queue's.
class Channel {
 public:
  static constexpr int kDepth = 256;  // work requests under way

  // Called with the completion queue's mutex held.
  class Owner {
   public:
    virtual ~Owner() = default;
    // `op` ended with an error, or was flushed after an earlier one. Null for a read that we added.
    virtual void failed(Channel& channel, const Op* op, const ibv_wc& why) = 0;
    // Nothing is under way any more on a channel that is stopped.
    virtual void drained(Channel& channel) = 0;
  };

  static Result<std::unique_ptr<Channel>> create(Owner& owner, size_t index, size_t nicIndex,
                                                 const Nic& nic, CompletionQueues& queues);
  ~Channel();

  // --- under the link's mutex
  Status connect(const QpAddress& to, const PortAddress& port);
  // The peer has reset its end and expects packets from our PSN on.
  Status reconnect();
  // How many, from the front, were started; 0 while there is no room.
  size_t post(std::span<const Op> ops);
  // Everything under way ends: failed() for each, then drained().
  void stop();
  bool up() const { return up_; }
  bool hasRoom() const;
  // The NIC did not take what we had room for: the channel is of no use any more.
  const Status& refusal() const { return refusal_; }
  size_t index() const { return index_; }
  QpAddress address() const;
  uint32_t renewPsn() { return psn_ = randomPsn(); }
  const Nic& nic() const { return pair_.nic(); }
  // Bytes under way.
  uint64_t load() const { return posted_ - ended_.load(std::memory_order_relaxed); }
  bool drained() const;

  // --- under the completion queue's mutex
  // The device does not answer any more: takes back what is under way. The slots stay, because a
  // late completion may point to them.
  std::vector<Op> abandon();

  // For the ibv_wc of any channel.
  static void handle(const ibv_wc& wc);

  CompletionQueues& queues() { return queues_; }

 private:
  struct SendSlot {
    Channel* channel;
    Op op;  // completion is null for a read that we added
  };
  struct Chain;

  Channel(Owner& owner, size_t index, size_t nicIndex, CompletionQueues& queues, ibv_cq* queue,
          QueuePair pair);
  SendSlot& slot(uint64_t sequence) { return slots_[sequence % kDepth]; }
  void add(Chain& chain, const Op& op);
  void addFlush(Chain& chain, const VerbsRemote& remote, uint64_t address);
  void launch(Chain& chain);
  void completed(SendSlot& slot, const ibv_wc& wc);
  void finishBefore(uint64_t sequence);

  Owner& owner_;
  const size_t index_;
  const size_t nicIndex_;
  CompletionQueues& queues_;
  ibv_cq* const queue_;
  QueuePair pair_;
  std::vector<SendSlot> slots_;

  // Under the link's mutex.
  bool up_ = false;
  uint32_t psn_;
  QpAddress to_;
  PortAddress port_;
  uint64_t posted_ = 0;  // bytes
  Status refusal_;

  std::atomic<bool> stopping_{false};  // written under the link's mutex
  std::atomic<uint64_t> head_{0};      // written under the link's mutex
  std::atomic<uint64_t> tail_{0};      // written under the queue's
  std::atomic<uint64_t> ended_{0};     // bytes; written under the queue's
  bool abandoned_ = false;             // under the queue's
};

}  // namespace hmc::verbs
