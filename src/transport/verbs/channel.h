#pragma once

#include <atomic>
#include <span>
#include <vector>

#include "base/event_fd.h"
#include "transport/transport.h"
#include "transport/verbs/memory.h"
#include "transport/verbs/queue_pair.h"

namespace hmc::verbs {

// One queue pair that sends our operations, those that are under way on it, and those that an error
// swept away: these are held until the channel is reset, and then posted again. Two sides use it,
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
                                                 CompletionQueues& queues);
  ~Channel();

  // --- under the link's mutex
  Status connect(const QpAddress& to, const PortAddress& port);
  void hold(const Op& op) { held_.push_back(op); }
  bool holding() const { return !held_.empty(); }
  void failHeld(const Status& why);
  // The peer has reset its end and expects packets from our PSN on: connects again and posts what
  // was held. Answers how many.
  Result<size_t> resume();
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

  CompletionQueues& queues() { return pair_.queues(); }

 private:
  struct SendSlot {
    Channel* channel;
    Op op;  // completion is null for a read that we added
  };
  struct Chain;

  Channel(Owner& owner, size_t index, size_t nicIndex, QueuePair pair)
      : owner_(owner),
        index_(index),
        nicIndex_(nicIndex),
        pair_(std::move(pair)),
        slots_(kDepth, SendSlot{this, {}}) {}
  SendSlot& slot(uint64_t sequence) { return slots_[sequence % kDepth]; }
  void add(Chain& chain, const Op& op);
  void launch(Chain& chain);
  void completed(SendSlot& slot, const ibv_wc& wc);
  void finishBefore(uint64_t sequence);

  Owner& owner_;
  const size_t index_;
  const size_t nicIndex_;
  QueuePair pair_;
  std::vector<SendSlot> slots_;

  // Under the link's mutex.
  bool up_ = false;
  uint32_t psn_ = randomPsn();
  QpAddress to_;
  PortAddress port_;
  uint64_t posted_ = 0;  // bytes
  Status refusal_;
  std::vector<Op> held_;

  std::atomic<bool> stopping_{false};  // written under the link's mutex
  std::atomic<uint64_t> head_{0};      // written under the link's mutex
  std::atomic<uint64_t> tail_{0};      // written under the queue's
  std::atomic<uint64_t> ended_{0};     // bytes; written under the queue's
  bool abandoned_ = false;             // under the queue's
};

// Where the thread in Transport::progress() waits for completions. One thread runs it at a time;
// the rest is safe from any thread.
class Progress {
 public:
  static Result<std::unique_ptr<Progress>> create(const Nics& nics);

  // The queues for operations on that NIC.
  CompletionQueues& queues(size_t nic) { return *queues_[nic]; }

  bool run(Deadline until);
  // Lets run() return.
  void wake() { wake_.signal(); }

 private:
  explicit Progress(EventFd wake) : wake_(std::move(wake)) {}
  bool poll();
  bool await(Deadline until);

  std::vector<std::unique_ptr<CompletionQueues>> queues_;
  const EventFd wake_;
};

// Is this completion status about one operation? After all others the peer is out of reach.
bool concernsOneOperation(ibv_wc_status status);
// Why the NICs refused `op`.
Status refusal(const Op& op, const ibv_wc& wc, const Library& library);

}  // namespace hmc::verbs
