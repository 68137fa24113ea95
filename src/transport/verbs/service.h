#pragma once

#include <condition_variable>
#include <thread>
#include <vector>

#include "base/event_fd.h"
#include "hmc/deadline.h"
#include "transport/verbs/control_qp.h"

namespace hmc::verbs {

// The thread that receives the control messages of all peers, watches the devices and runs timers.
// It sleeps when there is nothing to do. Safe from any thread.
class Service {
 public:
  using Clock = Deadline::Clock;

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
  void wake() { wake_.signal(); }

 private:
  struct Entry {
    Member* member;
    ControlQp* control;
  };

  Service(const Nics& nics, std::unique_ptr<CompletionQueues> queues, EventFd wake)
      : nics_(nics), queues_(std::move(queues)), wake_(std::move(wake)) {}
  void run(const std::stop_token& stop);
  int sleepMs();

  // These with mutex_ held.
  void receive();
  void watch(const Nic& nic);
  void expire();
  void reap();
  Member* memberOf(const ControlQp* control);

  const Nics& nics_;
  const std::unique_ptr<CompletionQueues> queues_;
  const EventFd wake_;
  std::mutex mutex_;  // guards what follows; held while a member is called
  std::condition_variable flushed_;
  std::vector<Entry> entries_;
  std::vector<std::unique_ptr<ControlQp>> leaving_;  // until nothing is posted on them
  std::jthread thread_;                              // last: it uses the rest
};

}  // namespace hmc::verbs
