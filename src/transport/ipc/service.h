#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/fd_exchange.h"
#include "base/lease.h"
#include "hmc/result.h"
#include "transport/exports.h"
#include "transport/ipc/bells.h"
#include "transport/ipc/ring.h"
#include "transport/transport.h"

namespace hmc::ipc {

// The target side of all rings of one transport: takes invitations and applies what peers post.
// Safe from any thread. Its thread runs from the first start() on and sleeps when there is no
// traffic.
class Service {
 public:
  Service(OwnBells& bells, Exports& exports) : bells_(bells), exports_(exports) {}
  ~Service();

  // The token of the Bells that peers ring.
  Result<std::string> start();

  // A Link of ours that a peer's ring may belong to. After removeLink() nothing that came through
  // it is applied, and its peer has been told.
  void addLink(const std::string& link, std::shared_ptr<Lease> lease);
  void removeLink(const std::string& link);

 private:
  struct Guest {
    std::string link;
    std::shared_ptr<Lease> lease;
    SharedBlock<Ring> ring;
    SharedBlock<Bells> bells;
  };

  void run(const std::stop_token& stop);
  bool takeInvitations();
  void answer(const std::string& exchange, const std::string& link, const std::string& ringToken,
              const std::string& bellsToken);
  bool serveAll();
  bool serve(Guest& guest);
  Code apply(Guest& guest, uint32_t index);
  // Takes the lock ahead of the service thread, which may be taking it over and over.
  std::unique_lock<std::mutex> lockFirst();

  OwnBells& bells_;
  Exports& exports_;
  std::atomic<int> wanting_{0};  // how many wait in lockFirst()
  // Guards what follows, and is held while a piece is copied: once a link is removed under it, no
  // copy of that link is under way.
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Lease>> links_;
  std::vector<std::unique_ptr<Guest>> guests_;
  std::mutex startMutex_;  // guards the making of thread_
  std::jthread thread_;
};

}  // namespace hmc::ipc
