#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/loop.h"
#include "transport/verbs/queue_pair.h"

namespace hmc::verbs {

// What the two ends of a link tell each other, a few times in its life.
struct ControlMessage {
  enum class Kind : uint8_t {
    hello = 1,  // sent by the initiator, answered with the same
    reset,      // my channel broke: reset your end of it, I start again at `psn`
    resetDone,
    closed,  // nothing of what you asked is applied any more; this is my last message
  };
  Kind kind = Kind::hello;
  uint8_t channel = 0;
  uint32_t psn = 0;
};

// The queue pair that carries control messages. Sending is safe from any thread; completions are
// handled on the service thread.
class ControlQp {
 public:
  static Result<std::unique_ptr<ControlQp>> create(CompletionQueues& queues);

  QpAddress address() const { return {0, pair_.number(), psn_}; }
  Status connect(const QpAddress& to, const PortAddress& port);
  Status send(const ControlMessage& message);

  struct Event {
    ControlQp* qp;
    std::optional<ControlMessage> received;
    Status failure;  // nothing reaches the peer any more
  };
  // For the ibv_wc of any ControlQp.
  static Event handle(const ibv_wc& wc);

  // Everything that was sent has arrived, or never will.
  bool flushed() const { return sending_.load() == 0; }
  // Nothing is posted, so no completion can come.
  bool idle() const { return sending_.load() == 0 && receiving_.load() == 0; }
  // What is posted ends.
  void stop() { pair_.stop(); }

 private:
  static constexpr size_t kDepth = 64;
  struct MessageSlot {
    ControlQp* qp;
    bool sends;
    uint64_t* bytes;  // in memory_
  };

  explicit ControlQp(QueuePair pair);
  ibv_sge pieceOf(const MessageSlot& slot) const;
  Status receiveInto(MessageSlot& slot);

  QueuePair pair_;
  const uint32_t psn_;
  std::vector<MessageSlot> slots_;  // kDepth to receive into, kDepth to send from
  const Page memory_ = makePage();
  Handle<ibv_mr> key_{nullptr, nullptr};
  std::mutex mutex_;
  std::vector<MessageSlot*> free_;  // guarded by mutex_: to send from
  std::atomic<size_t> sending_{0};
  std::atomic<size_t> receiving_{0};
};

// The thread that receives the control messages of all peers, watches the devices and runs timers.
// It sleeps when there is nothing to do. Safe from any thread.
class Service {
 public:
  // A link. Called on the service thread, with the service's mutex held.
  class Member {
   public:
    virtual ~Member() = default;
    virtual void received(const ControlMessage& message) = 0;
    // Control messages do not reach the peer any more, or a device has failed.
    virtual void lost(const Status& why) = 0;
    // When expire() has something to do.
    virtual Loop::Clock::time_point timer() const = 0;
    virtual void expire() = 0;
  };

  static Result<std::unique_ptr<Service>> create(const Nics& nics);
  ~Service();

  // For control queue pairs, which are all on the first NIC.
  CompletionQueues& queues() { return *queues_; }

  void add(Member& member, ControlQp& control);
  // When it returns, the member is not called any more. Messages that it has sent still go out.
  void remove(Member& member, std::unique_ptr<ControlQp> control);
  // A member's timer has changed.
  void wake() {
    loop_->post([this] { step(); });
  }

 private:
  struct Entry {
    Member* member;
    ControlQp* control;
  };

  Service(const Nics& nics, std::unique_ptr<CompletionQueues> queues)
      : nics_(nics), queues_(std::move(queues)) {}
  Status start();
  void step();

  // These with mutex_ held.
  void receive();
  void readEvents(const Nic& nic);
  void expire();
  void reap();

  const Nics& nics_;
  const std::unique_ptr<CompletionQueues> queues_;
  std::mutex mutex_;  // guards what follows; held while a member is called
  std::condition_variable flushed_;
  std::vector<Entry> entries_;
  std::vector<std::unique_ptr<ControlQp>> leaving_;  // until nothing is posted on them
  std::shared_ptr<Loop> loop_;
  std::vector<std::unique_ptr<Loop::Watch>> watches_;
  std::unique_ptr<Loop::Timer> timer_;
};

}  // namespace hmc::verbs
