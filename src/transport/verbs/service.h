#pragma once

#include <condition_variable>
#include <set>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "transport/verbs/memory.h"
#include "transport/verbs/words.h"

namespace hmc::verbs {

// The thread that hears the words of all peers, watches the devices and keeps the time. It sleeps
// when there is nothing to do. Safe from any thread.
class Service {
 public:
  using Clock = Deadline::Clock;

  // A link. Called on the service thread, with the service's mutex held.
  class Member {
   public:
    virtual ~Member() = default;
    virtual void heard(const Word& word) = 0;
    // Its words do not reach the peer any more, or a device that it uses has failed.
    virtual void lost(const Status& why) = 0;
    virtual bool uses(const Nic& nic) const = 0;
    // When expire() has something to do.
    virtual Clock::time_point timer() const = 0;
    virtual void expire() = 0;
  };

  static Result<std::unique_ptr<Service>> create(const Nics& nics);
  ~Service();

  // The queues for words of that NIC.
  CompletionQueues& queues(size_t nic) { return *queues_[nic]; }

  void add(Member& member, Words& words);
  // When it returns, the member is not called any more. What its words still have to say is said.
  void remove(Member& member, std::unique_ptr<Words> words);
  // A member's timer has changed.
  void wake();

 private:
  struct Entry {
    Member* member;
    Words* words;
  };

  Service(const Nics& nics, std::vector<std::unique_ptr<CompletionQueues>> queues, Fd wake)
      : nics_(nics), queues_(std::move(queues)), wake_(std::move(wake)) {}
  void run(const std::stop_token& stop);
  int sleepMs();

  // These with mutex_ held.
  void hear(CompletionQueues& queues);
  void watch(const Nic& nic);
  void expire();
  void bury();
  Member* memberOf(const Words* words);

  const Nics& nics_;
  const std::vector<std::unique_ptr<CompletionQueues>> queues_;
  const Fd wake_;
  std::mutex mutex_;  // guards what follows; held while a member is called
  std::condition_variable quiet_;
  std::vector<Entry> entries_;
  std::vector<std::unique_ptr<Words>> leaving_;  // until nothing of theirs is under way
  std::jthread thread_;                          // last: it uses the rest
};

}  // namespace hmc::verbs
