#pragma once

#include <condition_variable>
#include <vector>

#include "base/loop.h"
#include "transport/verbs/control_qp.h"

namespace hmc::verbs {

// The thread that receives the control messages of all peers, watches the devices and runs timers.
// It sleeps when there is nothing to do. Safe from any thread.
class Service {
 public:
  using Clock = Loop::Clock;

  // A link. Called on the service thread, with the service's mutex held.
  class Member {
   public:
    virtual ~Member() = default;
    virtual void received(const ControlMessage& message) = 0;
    // Control messages do not reach the peer any more, or a device has failed.
    virtual void lost(const Status& why) = 0;
    // When expire() has something to do.
    virtual Clock::time_point timer() const = 0;
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
  void start(Status& status);
  void step();

  // These with mutex_ held.
  void receive();
  void readEvents(const Nic& nic);
  void expire();
  void reap();
  Member* memberOf(const ControlQp* control);

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
