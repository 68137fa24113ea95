#include "api/connections.h"
#include "api/documented_types.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"

namespace hmc {

namespace {

std::string numericAddress(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address->sa_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text,
              sizeof(text));
  } else if (address->sa_family == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text,
              sizeof(text));
  }
  return text;
}

bool isAddressOfThisHost(const std::string& ip) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return false;
  bool found = false;
  for (ifaddrs* one = list; one && !found; one = one->ifa_next) {
    found = one->ifa_addr && numericAddress(one->ifa_addr) == ip;
  }
  freeifaddrs(list);
  return found;
}

bool answersTo(const PeerState& peer, const std::string& ip) {
  const auto& channel = peer.channel();
  const bool unixSocket = channel.remotePort() == 0;
  return channel.remoteHost() == ip || (unixSocket && isAddressOfThisHost(ip));
}

// On one host the kernel chooses the address that a connection comes from, not the peer.
bool sharesHostOf(const PeerState& peer, const std::string& ip) {
  return isAddressOfThisHost(ip) && isAddressOfThisHost(peer.channel().remoteHost());
}

bool answersTo(const PeerState& peer, uint16_t port) {
  const auto listeners = peer.attributes().listeners;
  if (port == 0) return listeners.empty();
  if (peer.channel().remotePort() == port) return true;
  return std::any_of(listeners.begin(), listeners.end(),
                     [&](const auto& listener) { return listener.port == port; });
}

}  // namespace

Result<std::shared_ptr<Connection>> Connections::open(const std::shared_ptr<PeerState>& peer,
                                                      const Target& target, Deadline deadline) {
  HMC_ASSIGN(auto transports, transportsFor(target.type, *node_, settings_));
  auto connection = std::make_shared<Connection>();
  connection->peer = peer;
  HMC_ASSIGN(connection->buffer, node_->open(peer, kBufferRegion, transports.names, deadline));
  if (!transports.substituteFor.empty()) {
    warnOnce(target.type, transports.substituteFor, connection->buffer->transport());
  }
  std::unique_lock lock(mutex_);
  for (const auto& [key, other] : table_) {
    if (other->peer == peer) connection->turns = other->turns;
  }
  if (!connection->turns) connection->turns = std::make_shared<BulkTurns>();
  table_[{target.ip, target.port, target.type}] = connection;
  version_ = nextVersion();
  return connection;
}

void Connections::warnOnce(ConnType type, const std::string& why, const std::string& instead) {
  {
    std::unique_lock lock(mutex_);
    if (std::exchange(warned_[type], true)) return;
  }
  logWarn("{}; {} is used instead", why, instead);
}

uint64_t Connections::nextVersion() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

Connections::Recent& Connections::recent() {
  thread_local Recent last;
  return last;
}

std::shared_ptr<Connection> Connections::known(const Target& target) const {
  const Key key{target.ip, target.port, target.type};
  std::shared_lock lock(mutex_);
  auto found = table_.find(key);
  if (found == table_.end()) return nullptr;
  recent() = {version_.load(), key, found->second};
  return found->second;
}

Result<std::shared_ptr<Connection>> Connections::find(const Target& target) {
  if (auto connection = known(target)) {
    if (!connection->ended) return connection;
    if (connection->peer->channel().status().ok())
      return open(connection->peer, target, settings_.transfer);
  }
  const auto& [ip, port, type] = target;
  auto peers = peersAt(ip);
  const auto elsewhere = [&](const auto& peer) { return !answersTo(*peer, target.port); };
  std::erase_if(peers, elsewhere);
  if (peers.empty() && port != 0) {
    peers = node_->peers();
    std::erase_if(peers, [&](const auto& peer) {
      return elsewhere(peer) || !peer->channel().status().ok() || !sharesHostOf(*peer, target.ip);
    });
  }
  if (peers.empty()) return nobody(fmt::format("{}:{} ({})", ip, port, connTypeName(type)));
  if (peers.size() > 1) return ambiguous(ip, peers);
  return open(peers.front(), target, settings_.transfer);
}

Result<std::shared_ptr<Connection>> Connections::find(const std::string& ip, ConnType type) {
  bool wasDialled = false;
  uint16_t port = 0;
  {
    std::shared_lock lock(mutex_);
    auto found = dialled_.find(ip);
    wasDialled = found != dialled_.end();
    if (wasDialled) port = found->second;
  }
  if (wasDialled) return find({ip, port, type});
  auto peers = peersAt(ip);
  if (peers.empty()) return nobody(fmt::format("{} ({})", ip, connTypeName(type)));
  if (peers.size() > 1) return ambiguous(ip, peers);
  return find({ip, peers.front()->channel().remotePort(), type});
}

void Connections::remember(const std::string& ip, uint16_t port) {
  std::unique_lock lock(mutex_);
  dialled_[ip] = port;
}

Status Connections::ambiguous(const std::string& ip,
                              const std::vector<std::shared_ptr<PeerState>>& peers) const {
  std::string ports;
  for (const auto& peer : peers) {
    ports += fmt::format("{}{}", ports.empty() ? "" : ", ", peer->channel().remotePort());
  }
  return error(Code::notFound, "{} peers are connected from {}: name one by its port ({})",
               peers.size(), ip, ports);
}

Status Connections::nobody(const std::string& what) const {
  std::string names;
  for (const auto& peer : node_->peers()) names += (names.empty() ? "" : ", ") + peer->title();
  return error(Code::notFound, "not connected to {}; connected: {}", what,
               names.empty() ? "nobody" : names);
}

std::vector<std::shared_ptr<PeerState>> Connections::peersAt(const std::string& ip) const {
  auto peers = node_->peers();
  std::erase_if(peers, [&](const auto& peer) {
    return !peer->channel().status().ok() || !answersTo(*peer, ip);
  });
  return peers;
}

Status Connections::waitFor(const std::string& ip, Deadline deadline) {
  constexpr std::chrono::seconds kMoment{1};
  auto waitUntil = [&](ClientStage least, Deadline until) {
    auto fromThere = [&](const PeerState& peer) {
      const bool tells = !peer.attributes().rank.has_value();
      return peer.channel().status().ok() && answersTo(peer, ip) &&
             (!tells || sessions_->stageOf(peer) >= least);
    };
    return node_->waitForPeer(fromThere, "a peer from " + ip, until).status();
  };
  HMC_TRY(waitUntil(ClientStage::connected, deadline));
  (void)waitUntil(ClientStage::wrote, earlier(deadline, Deadline(kMoment)));
  return Status();
}

Status Connections::check(const Target& target) {
  auto connection = known(target);
  if (!connection) return find(target).status();
  Status status = connection->peer->channel().status();
  if (status.ok()) return status;
  // It may have come back as a new process.
  connection->ended = true;
  return find(target).ok() ? Status() : status;
}

Status Connections::check(const std::string& ip, ConnType type) {
  auto connection = find(ip, type);
  return connection.ok() ? (*connection)->peer->channel().status() : connection.status();
}

void Connections::close(const Target& target) {
  std::shared_ptr<Connection> gone;
  {
    std::unique_lock lock(mutex_);
    auto found = table_.find({target.ip, target.port, target.type});
    if (found == table_.end()) return;
    gone = found->second;
    table_.erase(found);
    version_ = nextVersion();
  }
  closeIfUnused(gone->peer);
}

void Connections::close(const std::string& ip, ConnType type) {
  std::vector<uint16_t> ports;
  {
    std::shared_lock lock(mutex_);
    for (const auto& [key, connection] : table_) {
      if (key.ip == ip && key.type == type) ports.push_back(key.port);
    }
  }
  for (uint16_t port : ports) close({ip, port, type});
  std::unique_lock lock(mutex_);
  dialled_.erase(ip);
}

void Connections::closeIfUnused(const std::shared_ptr<PeerState>& peer) {
  {
    std::shared_lock lock(mutex_);
    for (const auto& [key, connection] : table_) {
      if (connection->peer == peer) return;
    }
  }
  peer->close(error(Code::disconnected, "the connection to {} was closed here", peer->title()));
}

}  // namespace hmc
