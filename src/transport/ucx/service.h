#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/event_set.h"
#include "transport/ucx/address.h"
#include "transport/ucx/control_worker.h"
#include "transport/ucx/draining.h"

namespace hmc::ucx {

// The thread that serves what peers ask of us, with a worker per link, and that talks to their
// services. It sleeps when there is nothing to do. Safe from any thread.
class Service {
 public:
  // A link. Called with the service's mutex held.
  class Member {
   public:
    virtual ~Member() = default;
    // The path to the peer has failed: it is time to leave.
    virtual bool broken() const = 0;
    // The peer is gone. `fenced`: and it applies nothing more.
    virtual void peerLeft(const Status& why, bool fenced) = 0;
  };

  // Must not outlive any of these.
  static Result<std::unique_ptr<Service>> create(Context& context, Exports& exports,
                                                 Draining& draining);
  // Waits a little for outstanding hellos.
  ~Service();

  // Makes a worker that serves the peer of `link` while its lease holds; answers its address.
  Result<std::string> open(uint64_t link, Member& member, std::shared_ptr<Lease> lease);
  // Where other services send control messages.
  const std::string& controlAddress() const { return control_->address(); }
  // From now on we can say goodbye to the peer, and notice that it is gone.
  Status connect(uint64_t link, const Address& peer);
  // Waits until the peer's service has answered.
  Status awaitPeer(uint64_t link, Deadline deadline);
  // Serves that peer no longer and says so. When it returns, no byte that it asked for moves.
  void leave(uint64_t link);
  // The same, and the member is not called any more.
  void remove(uint64_t link);
  // Lets the thread find out which members are broken.
  void noticeBroken();

 private:
  using Clock = Deadline::Clock;
  struct ServedLink;

  Service(Context& context, Exports& exports, Draining& draining,
          std::unique_ptr<ControlWorker> control, EventSet events);
  void run(const std::stop_token& stop);
  void await();
  std::unique_lock<std::mutex> enter();

  // These with mutex_ held.
  bool step();
  bool serve(ServedLink& link);
  bool armAll();
  void takeGoodbyes();
  void dropLost();
  void leaveBroken();
  void leave(ServedLink& link);
  void controlSent();
  ServedLink* find(uint64_t link);

  Context& context_;
  Exports& exports_;
  Draining& draining_;
  EventSet events_;
  std::atomic<int> callers_{0};  // that wait for mutex_; the thread lets them go first
  std::atomic<bool> anyBroken_{false};
  std::mutex mutex_;                 // guards everything below
  std::condition_variable changed_;  // a peer's service has answered, or is lost
  const std::unique_ptr<ControlWorker> control_;
  bool pollsControl_ = true;      // not armed
  std::vector<uint64_t> polled_;  // links whose target is not armed
  std::map<uint64_t, std::unique_ptr<ServedLink>> links_;
  std::jthread thread_;
};

}  // namespace hmc::ucx
