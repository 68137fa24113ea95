#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "node/node_impl.h"

namespace hmc {

// How far a client of the first generation says it is.
enum class ClientStage : uint8_t { arriving, connected, wrote };

// What the documented classes know about peers beyond their Node. The first generation names a peer
// by its address alone and synchronises nothing: its server may read before the client has come or
// written, and its client may go while the server reads. So clients tell how far they are and ask
// before they leave. Safe from any thread.
class Sessions final : public NodeExtension {
 public:
  // The client's side. tell() does not wait; stayWhileRead() returns when the server no longer
  // reads from this host, does not answer soon, or the deadline has passed.
  static void tell(PeerState& server, ClientStage stage);
  static void stayWhileRead(PeerState& server, Deadline deadline);

  // The server's side: what the client said last.
  ClientStage stageOf(const PeerState& client) const;
  // While it lives, clients from that host that ask whether they may leave are asked to stay.
  class Reading {
   public:
    Reading(Sessions& sessions, std::string host);
    ~Reading();
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

   private:
    Sessions& sessions_;
    const std::string host_;
  };

  // A peer that left before its messages were read, if `wanted` is true for it.
  std::shared_ptr<PeerState> departed(const NodeImpl::PeerTest& wanted);
  bool anyDeparted() const { return departedCount_.load(std::memory_order_acquire) > 0; }

  Result<std::string> answer(PeerState& peer, uint16_t method, std::string_view request) override;
  void left(const std::shared_ptr<PeerState>& peer) override;

 private:
  mutable std::mutex mutex_;  // guards all but the count
  std::map<const PeerState*, ClientStage> stages_;
  std::multiset<std::string> reading_;                // hosts
  std::vector<std::shared_ptr<PeerState>> departed_;  // gone, with unread messages; oldest first
  std::atomic<size_t> departedCount_{0};              // spares departed() the lock
};

}  // namespace hmc
