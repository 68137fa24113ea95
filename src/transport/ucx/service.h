#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/loop.h"
#include "transport/ucx/path.h"

namespace hmc::ucx {

// The thread that serves what peers ask of us, with a worker per link, and that talks to their
// services over a worker of its own, whose connections also tell when a peer dies. It sleeps when
// there is nothing to do. Safe from any thread.
class Service final : private Worker {
 public:
  // A link. Called on the service's thread.
  class Member {
   public:
    virtual ~Member() = default;
    // The peer is gone. `fenced`: and it applies nothing more.
    virtual void peerLeft(const Status& why, bool fenced) = 0;
  };

  // Must not outlive any of these.
  static Result<std::unique_ptr<Service>> create(Context& context, Exports& exports,
                                                 Draining& draining);
  // Waits a little for outstanding hellos, and is abandoned if they do not come.
  ~Service() override;

  // Makes a worker that serves the peer of `link` while its lease holds; answers its address.
  Result<std::string> open(uint64_t link, Member& member, std::shared_ptr<Lease> lease);
  // Where other services send control messages.
  using Worker::address;
  // From now on we can say goodbye to the peer, and notice that it is gone.
  Status connect(uint64_t link, const Address& peer);
  // Tells the peer's service that a path to its target comes up, and waits until it expects that.
  Status announce(uint64_t link, Deadline deadline);
  // Serves that peer no longer and says so. When it returns, no byte that it asked for moves.
  void leave(uint64_t link);
  // The same, a moment later: does not wait.
  void leaveSoon(uint64_t link);
  // The same as leave(), and the member is not called any more.
  void remove(uint64_t link);

 private:
  friend class Worker;
  using Clock = Deadline::Clock;
  struct PeerService;
  struct ServedLink;

  Service(Context& context, Exports& exports, Draining& draining);
  Status call(const std::function<Status()>& task);

  // The rest belongs to the loop's thread.
  Status start();
  bool readyToSleep();
  bool step();
  bool armAll();
  void received(const Message& message);
  bool settled() const override;
  bool peersAnswered() const;
  Result<PeerService*> reach(const std::string& address);
  void send(ucp_ep_h endpoint, ServiceKind kind, uint64_t number, uint64_t link = 0);
  void takeGoodbyes();
  void dropLost();
  void leave(ServedLink& link);
  ServedLink* find(uint64_t link);

  Context& context_;
  Exports& exports_;
  Draining& draining_;
  std::atomic<int> callers_{1};  // that wait for the thread, which lets them go first; and create()
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t changes_ = 0;  // guarded by mutex_: peers' services have answered, left, or are lost
  Clock::time_point lastTraffic_;
  bool polled_ = true;                    // our own worker: not armed
  bool peerChanged_ = false;              // one has answered, left, or was lost
  std::vector<uint64_t> goodbyes_;        // links whose peer has said it
  std::vector<ServedLink*> polledLinks_;  // whose target is not armed
  std::shared_ptr<Loop> loop_;
  std::unique_ptr<Loop::Watch> watch_;                         // of our own worker
  std::unique_ptr<Loop::Timer> timer_;                         // for draining_
  std::map<std::string, std::unique_ptr<PeerService>> peers_;  // by address
  std::map<uint64_t, std::unique_ptr<ServedLink>> links_;
  // Links whose peer knows our address, but whose service has not said hello yet: it may be
  // connecting to us.
  std::set<uint64_t> unmet_;
};

}  // namespace hmc::ucx
