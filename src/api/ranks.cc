#include "api/ranks.h"

#include "base/error.h"

namespace hmc {

void Ranks::bind(uint32_t rank, std::shared_ptr<PeerState> peer) {
  std::lock_guard lock(mutex_);
  peers_[rank] = std::move(peer);
}

void Ranks::unbind(uint32_t rank, const std::shared_ptr<PeerState>& peer) {
  std::lock_guard lock(mutex_);
  auto found = peers_.find(rank);
  if (found != peers_.end() && found->second == peer) peers_.erase(found);
}

std::shared_ptr<PeerState> Ranks::connected(uint32_t rank) {
  {
    std::lock_guard lock(mutex_);
    auto found = peers_.find(rank);
    if (found != peers_.end() && found->second->channel().status().ok()) return found->second;
  }
  auto found = find(rank, Deadline::now());
  return found.ok() && (*found)->channel().status().ok() ? *found : nullptr;
}

Result<std::shared_ptr<PeerState>> Ranks::find(uint32_t rank, Deadline deadline) {
  {
    std::lock_guard lock(mutex_);
    auto found = peers_.find(rank);
    // One that ended may have left messages; receive() unbinds it once they are read.
    if (found != peers_.end()) return found->second;
  }
  auto hasRank = [rank](const PeerState& peer) { return peer.attributes().rank == rank; };
  HMC_ASSIGN(auto peer, node_->waitForPeer(hasRank, fmt::format("rank {}", rank), deadline));
  bind(rank, peer);
  return peer;
}

Status Ranks::send(uint32_t rank, MessageKind kind, uint16_t flags, std::string_view payload,
                   Deadline deadline) {
  HMC_ASSIGN(auto peer, find(rank, deadline));
  if (!peer->channel().status().ok()) {
    // It may have come back as a new process.
    Status why = peer->channel().status();
    unbind(rank, peer);
    auto again = find(rank, Deadline::now());
    if (!again.ok()) return why.within(fmt::format("rank {}", rank));
    peer = *again;
  }
  HMC_TRY(peer->flush(deadline));
  return peer->channel().send(kind, flags, payload, deadline);
}

Result<Message> Ranks::receive(uint32_t rank, MessageKind kind, Deadline deadline) {
  auto left = node_->takeLeftBehind([rank, kind](const PeerState& peer) {
    return peer.attributes().rank == rank && peer.channel().unread(kind);
  });
  if (left) return left->channel().receive(kind, Deadline::now());
  HMC_ASSIGN(auto peer, find(rank, deadline));
  auto message = peer->channel().receive(kind, deadline);
  if (!message.ok() && !peer->channel().status().ok()) unbind(rank, peer);
  return message;
}

void Ranks::close(uint32_t rank) {
  auto peer = connected(rank);
  if (!peer) return;
  peer->close(error(Code::disconnected, "the connection to rank {} was closed here", rank));
  unbind(rank, peer);
}

}  // namespace hmc
