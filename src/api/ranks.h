#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>

#include "api/sessions.h"
#include "base/spin_lock.h"

namespace hmc {

// Peers by rank: those that we dialled under the number that we gave them, those that dialled us
// under the number that they gave. Safe from any thread.
class Ranks {
 public:
  Ranks(std::shared_ptr<NodeImpl> node, std::shared_ptr<Sessions> sessions)
      : node_(std::move(node)), sessions_(std::move(sessions)) {}

  void bind(uint32_t rank, std::shared_ptr<PeerState> peer);
  // The peer if it is connected now.
  std::shared_ptr<PeerState> connected(uint32_t rank);
  // Waits for the peer to connect.
  Result<std::shared_ptr<PeerState>> find(uint32_t rank, Deadline deadline);

  // Arrives after the data of every transfer to that peer that was started before.
  Status send(uint32_t rank, MessageKind kind, uint16_t flags, std::string_view payload,
              std::chrono::milliseconds timeout);
  // Channel::tryReceive() of that peer.
  bool tryReceive(uint32_t rank, MessageKind kind, void* data, size_t size);
  // What a peer had sent before it left is still received.
  Result<Message> receive(uint32_t rank, KindSet kinds, std::chrono::milliseconds timeout);

  void close(uint32_t rank);

 private:
  // Where a rank leads. Each lock protects the peer from being exchanged; one of them is held while
  // a message is sent, the other while one is waited for, so that the peer needs no reference.
  struct Route {
    alignas(64) SpinLock sending;
    alignas(64) SpinLock receiving;
    uint32_t rank = 0;
    std::shared_ptr<PeerState> peer;  // written with both locks; null: not bound
  };
  Route* routeOf(uint32_t rank) {
    Route* recent = recent_[rank % recent_.size()].load(std::memory_order_acquire);
    return recent && recent->rank == rank ? recent : findRoute(rank);
  }
  Route* findRoute(uint32_t rank);
  std::shared_ptr<PeerState> bound(uint32_t rank);
  std::shared_ptr<PeerState> successor(uint32_t rank, const std::shared_ptr<PeerState>& ended);
  bool sendAtOnce(uint32_t rank, MessageKind kind, uint16_t flags, std::string_view payload);
  void unbind(uint32_t rank, const std::shared_ptr<PeerState>& peer);

  const std::shared_ptr<NodeImpl> node_;
  const std::shared_ptr<Sessions> sessions_;
  std::mutex mutex_;
  std::map<uint32_t, Route> routes_;  // guarded by mutex_; a Route stays where it is
  // Routes by the low bits of their rank, to find one without the lock.
  std::array<std::atomic<Route*>, 64> recent_{};
};

}  // namespace hmc
