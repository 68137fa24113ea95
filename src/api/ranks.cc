#include "api/ranks.h"

#include "base/error.h"

namespace hmc {

void Ranks::bind(uint32_t rank, std::shared_ptr<PeerState> peer) {
  std::lock_guard lock(mutex_);
  const auto [found, made] = routes_.try_emplace(rank);
  Route& route = found->second;
  // Once: routeOf() reads it without the lock.
  if (made) route.rank = rank;
  std::scoped_lock both(route.receiving, route.sending);
  route.peer.swap(peer);
  recent_[rank % recent_.size()].store(&route, std::memory_order_release);
}

void Ranks::unbind(uint32_t rank, const std::shared_ptr<PeerState>& peer) {
  Route* route = routeOf(rank);
  if (!route) return;
  std::scoped_lock both(route->receiving, route->sending);
  if (route->peer == peer) route->peer.reset();
}

Ranks::Route* Ranks::findRoute(uint32_t rank) {
  std::lock_guard lock(mutex_);
  auto found = routes_.find(rank);
  return found != routes_.end() ? &found->second : nullptr;
}

std::shared_ptr<PeerState> Ranks::bound(uint32_t rank) {
  Route* route = routeOf(rank);
  if (!route) return nullptr;
  std::lock_guard lock(route->sending);
  return route->peer;
}

std::shared_ptr<PeerState> Ranks::connected(uint32_t rank) {
  if (auto peer = bound(rank); peer && peer->channel().status().ok()) return peer;
  auto found = find(rank, Deadline::now());
  return found.ok() && (*found)->channel().status().ok() ? *found : nullptr;
}

Result<std::shared_ptr<PeerState>> Ranks::find(uint32_t rank, Deadline deadline) {
  // One that ended may have left messages; receive() unbinds it once they are read.
  if (auto peer = bound(rank)) return peer;
  auto hasRank = [rank](const PeerState& peer) { return peer.attributes().rank == rank; };
  HMC_ASSIGN(auto peer, node_->waitForPeer(hasRank, fmt::format("rank {}", rank), deadline));
  bind(rank, peer);
  return peer;
}

// A peer that ended makes room for one that came back under its rank.
std::shared_ptr<PeerState> Ranks::successor(uint32_t rank,
                                            const std::shared_ptr<PeerState>& ended) {
  unbind(rank, ended);
  auto cameBack = [rank, &ended](const PeerState& peer) {
    return peer.attributes().rank == rank && &peer != ended.get();
  };
  auto next = node_->waitForPeer(cameBack, fmt::format("rank {}", rank), Deadline::now());
  if (!next.ok()) return nullptr;
  bind(rank, *next);
  return *next;
}

// The usual case, which waits for nothing. A reference to the peer and a look at the clock would
// cost as much as all the rest.
bool Ranks::sendAtOnce(uint32_t rank, MessageKind kind, uint16_t flags, std::string_view payload) {
  Route* route = routeOf(rank);
  if (!route) return false;
  std::lock_guard lock(route->sending);
  return route->peer && route->peer->quiet() &&
         route->peer->channel().trySend(kind, flags, payload);
}

Status Ranks::send(uint32_t rank, MessageKind kind, uint16_t flags, std::string_view payload,
                   std::chrono::milliseconds timeout) {
  if (sendAtOnce(rank, kind, flags, payload)) return Status();
  Deadline deadline(timeout);
  HMC_ASSIGN(auto peer, find(rank, deadline));
  if (Status why = peer->channel().status(); !why.ok()) {
    peer = successor(rank, peer);
    if (!peer) return why.within(fmt::format("rank {}", rank));
  }
  Status sent = peer->flush(deadline);
  if (sent.ok()) sent = peer->channel().send(kind, flags, payload, deadline);
  return sent.ok() ? sent : sent.within(fmt::format("rank {}", rank));
}

bool Ranks::tryReceive(uint32_t rank, MessageKind kind, void* data, size_t size) {
  Route* route = sessions_->anyDeparted() ? nullptr : routeOf(rank);
  if (!route) return false;
  std::unique_lock lock(route->receiving, std::try_to_lock);
  return lock && route->peer && route->peer->channel().tryReceive(kind, data, size);
}

Result<Message> Ranks::receive(uint32_t rank, KindSet kinds, std::chrono::milliseconds timeout) {
  Deadline deadline(timeout);
  auto left = sessions_->departed([rank, kinds](const PeerState& peer) {
    return peer.attributes().rank == rank && peer.channel().unread(kinds);
  });
  if (left) return left->channel().receive(kinds, Deadline::now());
  HMC_ASSIGN(auto peer, find(rank, deadline));
  for (;;) {
    auto message = peer->channel().receive(kinds, deadline);
    if (message.ok()) return message;
    const bool ended = !peer->channel().status().ok();
    if (ended) peer = successor(rank, peer);
    if (!ended || !peer) return message.status().within(fmt::format("rank {}", rank));
  }
}

void Ranks::close(uint32_t rank) {
  auto peer = connected(rank);
  if (!peer) return;
  peer->close(error(Code::disconnected, "the connection to rank {} was closed here", rank));
  unbind(rank, peer);
}

}  // namespace hmc
