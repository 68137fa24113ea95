#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/lease.h"
#include "transport/exports.h"
#include "transport/ipc/ring.h"
#include "transport/ipc/shared_block.h"
#include "transport/transport.h"

namespace hmc::ipc {

// The target side of all rings of one transport: accepts rings and applies what peers post there.
// Safe from any thread. Its thread runs from the first start() on and sleeps when there is no
// traffic.
class Service {
 public:
  Service(ServicePage& page, Exports& exports) : page_(page), exports_(exports) {}
  ~Service();

  // Not ok where the system has no thread for it; the next call tries again.
  Status start();

  // A Link of ours that a peer's ring may belong to. After removeLink() nothing that its peer posts
  // is applied, and the peer has been told.
  void addLink(const std::string& link, std::shared_ptr<Lease> lease);
  void removeLink(const std::string& link);
  // The peer of that link made a ring and gave us its own page.
  Status acceptRing(const std::string& link, SharedBlock<Ring> ring, SharedBlock<ServicePage> page);

 private:
  struct Session {
    std::string link;
    std::shared_ptr<Lease> lease;
    SharedBlock<Ring> ring;
    SharedBlock<ServicePage> page;
  };

  void run(const std::stop_token& stop);
  bool serveAll();
  bool serve(Session& session);
  Code apply(Session& session, uint32_t index);
  // Takes the lock ahead of the service thread, which locks it over and over.
  std::unique_lock<std::mutex> lockFirst();

  ServicePage& page_;
  Exports& exports_;
  std::atomic<int> waiting_{0};  // how many wait in lockFirst()
  // Guards what follows, and is held while a piece is copied: once a link is removed under it, no
  // copy of that link is under way.
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Lease>> links_;
  std::vector<std::unique_ptr<Session>> sessions_;
  std::mutex startMutex_;  // guards the making of thread_
  std::jthread thread_;
};

}  // namespace hmc::ipc
