#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include "api/sessions.h"

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
  // What is there or comes at once, by the shortest way; nothing says nothing about why.
  std::optional<Message> tryReceive(uint32_t rank, KindSet kinds);
  // What a peer had sent before it left is still received.
  Result<Message> receive(uint32_t rank, KindSet kinds, std::chrono::milliseconds timeout);

  void close(uint32_t rank);

 private:
  std::shared_ptr<PeerState> bound(uint32_t rank);
  std::shared_ptr<PeerState> successor(uint32_t rank, const std::shared_ptr<PeerState>& ended);
  bool sendAtOnce(uint32_t rank, MessageKind kind, uint16_t flags, std::string_view payload);
  void unbind(uint32_t rank, const std::shared_ptr<PeerState>& peer);

  const std::shared_ptr<NodeImpl> node_;
  const std::shared_ptr<Sessions> sessions_;
  std::mutex mutex_;
  std::map<uint32_t, std::shared_ptr<PeerState>> peers_;  // guarded by mutex_
};

}  // namespace hmc
