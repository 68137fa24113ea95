#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "transport/ucx/address.h"
#include "transport/ucx/partings.h"
#include "transport/ucx/worker.h"

namespace hmc::ucx {

// The thread that serves what peers ask of us, with a worker per link, and that tells their
// services about ours. It sleeps when there is nothing to do. Safe from any thread.
class Service {
 public:
  // A link, as the service sees it. Called with the service's mutex held.
  class Host {
   public:
    virtual ~Host() = default;
    // The way to the peer is broken: it is time to leave.
    virtual bool broken() const = 0;
    // Nothing is to be expected of the peer any more. `fenced`: and it applies nothing more.
    virtual void peerLeft(const Status& why, bool fenced) = 0;
  };

  // Must not outlive any of these.
  static Result<std::unique_ptr<Service>> create(Context& context, Areas& areas,
                                                 Partings& partings);
  // Waits a little for partings and hellos to be over.
  ~Service();

  // Makes a worker that serves the peer of `link` while its lease holds; answers its address.
  Result<std::string> open(uint64_t link, Host& host, std::shared_ptr<Lease> lease);
  // The worker that hears what other services say.
  const std::string& wordsAddress() const { return words_->address(); }
  // From now on we can say goodbye to the peer, and notice that it is gone.
  Status connect(uint64_t link, const Address& peer);
  // Waits until the peer's service has answered.
  Status awaitPeer(uint64_t link, Deadline deadline);
  // Serves that peer no longer and says so. When it returns, no byte that it asked for moves.
  void leave(uint64_t link);
  // The same, and the host is not called any more.
  void remove(uint64_t link);
  // Lets the thread look at which hosts are broken.
  void noticeBroken();

 private:
  using Clock = Deadline::Clock;
  struct Guest;
  struct Counterpart;

  Service(Context& context, Areas& areas, Partings& partings, std::unique_ptr<Worker> words,
          Fd epoll, Fd wake);
  static ucs_status_t heard(void* service, const void* header, size_t headerSize, void* data,
                            size_t size, const ucp_am_recv_param_t* param);
  void run(const std::stop_token& stop);
  std::unique_lock<std::mutex> enter();

  // These with mutex_ held.
  bool step();
  bool unsettled() const;
  bool serve(Guest& guest);
  bool armAll();
  void takeGoodbyes();
  void dropLost();
  void leaveBroken();
  void leave(Guest& guest);
  Result<Counterpart*> counterpart(const std::string& words);
  void say(ucp_ep_h endpoint, uint8_t word, uint64_t link);
  void watch(uint64_t id, int fd);
  Guest* find(uint64_t link);

  Context& context_;
  Areas& areas_;
  Partings& partings_;
  const Fd epoll_;
  const Fd wake_;
  std::atomic<int> callers_{0};  // who wait for mutex_; the thread lets them go first
  std::atomic<bool> anyBroken_{false};
  std::mutex mutex_;                 // guards everything below
  std::condition_variable changed_;  // a peer's service has answered, or is lost
  const std::unique_ptr<Worker> words_;
  bool wordsAwake_ = true;  // has to be armed before the thread sleeps; so have those in awake_
  std::map<uint64_t, std::unique_ptr<Guest>> guests_;
  std::vector<uint64_t> awake_;
  std::map<std::string, std::unique_ptr<Counterpart>> counterparts_;  // by address
  std::vector<uint64_t> goodbyes_;  // links that were heard of and not told yet
  bool anyLost_ = false;            // one of counterparts_
  std::jthread thread_;
};

}  // namespace hmc::ucx
