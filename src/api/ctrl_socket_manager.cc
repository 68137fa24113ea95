#include "hmc/ctrl_socket_manager.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "api/documented_types.h"
#include "api/listeners.h"
#include "api/ranks.h"
#include "api/settings.h"
#include "base/error.h"
#include "base/fork_guard.h"

namespace hmc {

namespace {

// Several peers can share an address: how long to listen to one before looking at the next.
constexpr std::chrono::milliseconds kTurn{10};

Status unpack(const Result<Message>& message, void* data, size_t size) {
  HMC_TRY(message.status());
  if (message->payload.size() != size) {
    return error(Code::invalidArgument, "the message has {} bytes, {} were expected",
                 message->payload.size(), size);
  }
  std::memcpy(data, message->payload.data(), size);
  return Status();
}

Status checkPointer(const void* data, size_t size) {
  if (data || size == 0) return Status();
  return error(Code::invalidArgument, "{} bytes at a null pointer are no message", size);
}

// CTRL_INT carries ints and tags, told apart by their size.
Result<MessageKind> kindOf(CtrlMsgType type, size_t size) {
  if (type == CTRL_STRUCT) return MessageKind::structure;
  if (type == CTRL_INT && size == sizeof(int)) return MessageKind::integer;
  if (type == CTRL_INT && size == sizeof(uint64_t)) return MessageKind::tag;
  return error(Code::invalidArgument, "a control message of type {} cannot have {} bytes",
               static_cast<int>(type), size);
}

}  // namespace

// What a CtrlSocketManager stands on: a Node that it makes when it is first needed and drops in
// stop() and closeAll().
class CtrlSocketManager::Impl {
 public:
  // A Node and what is known of its peers.
  struct Running {
    Running(Settings from, std::shared_ptr<Sessions> with, std::shared_ptr<NodeImpl> made)
        : settings(std::move(from)),
          sessions(std::move(with)),
          node(std::move(made)),
          listeners(node),
          ranks(node, sessions) {}
    ~Running() { node->close(); }

    // When a process dials itself it has both ends; what was sent arrives at the one that was
    // dialled.
    bool hears(const PeerState& peer, const std::string& ip) const {
      bool ownDial = peer.channel().initiator() && peer.channel().peer().id == node->id();
      return peer.channel().remoteHost() == ip && !ownDial;
    }
    // The connected one that we dialled at that address; null if there is none.
    std::shared_ptr<PeerState> dialledAt(const std::string& ip) {
      std::lock_guard lock(mutex);
      auto found = dialled.find(ip);
      const bool connected = found != dialled.end() && found->second->channel().status().ok();
      return connected ? found->second : nullptr;
    }

    const Settings settings;
    const std::shared_ptr<Sessions> sessions;
    const std::shared_ptr<NodeImpl> node;
    Listeners listeners;
    Ranks ranks;
    std::mutex mutex;
    std::map<std::string, std::shared_ptr<PeerState>> dialled;  // guarded by mutex, by address
    std::map<std::string, int> numbers;                         // guarded by mutex, by address
  };

  // Null while there is none, and in the child of a fork, where it is the parent's.
  std::shared_ptr<Running> current() const {
    std::lock_guard lock(mutex_);
    return running_ && running_->node->checkFork().ok() ? running_ : nullptr;
  }
  Result<std::shared_ptr<Running>> running() {
    std::lock_guard lock(mutex_);
    if (running_ && !running_->node->checkFork().ok()) {
      return error(Code::invalidArgument,
                   "this process was forked from one that uses this CtrlSocketManager: call "
                   "closeAll() first, which leaves the parent's connections alone");
    }
    if (!running_) {
      HMC_ASSIGN(Settings settings, Settings::fromEnvironment());
      auto sessions = std::make_shared<Sessions>();
      HMC_ASSIGN(auto node, NodeImpl::create(settings.node, makeTransports, sessions));
      running_ = ownedHere(new Running(std::move(settings), std::move(sessions), std::move(node)));
    }
    return running_;
  }
  void closeAll() {
    std::shared_ptr<Running> last;
    std::lock_guard lock(mutex_);
    last.swap(running_);
  }

  Status start(const std::string& ip, uint16_t port, const std::string& path) {
    HMC_ASSIGN(auto now, running());
    return now->listeners.open(controlListeners(ip, port, path));
  }
  Status connect(CtrlId peer, const std::string& address, CtrlId self) {
    HMC_ASSIGN(auto now, running());
    HMC_ASSIGN(auto found, now->node->connectPatiently(address, self, now->settings.connect));
    now->ranks.bind(peer, found);
    return Status();
  }
  Status send(CtrlId peer, MessageKind kind, uint16_t flags, const void* data, size_t size) {
    HMC_TRY(checkPointer(data, size));
    HMC_ASSIGN(auto now, running());
    return now->ranks.send(peer, kind, flags, {static_cast<const char*>(data), size},
                           now->settings.transfer);
  }
  Status receive(CtrlId peer, MessageKind kind, void* data, size_t size) {
    HMC_TRY(checkPointer(data, size));
    HMC_ASSIGN(auto now, running());
    if (now->ranks.tryReceive(peer, kind, data, size)) return Status();
    return unpack(now->ranks.receive(peer, kind, now->settings.receive), data, size);
  }
  Result<Message> receiveAny(CtrlId peer) {
    HMC_ASSIGN(auto now, running());
    KindSet kinds{MessageKind::integer, MessageKind::tag, MessageKind::structure};
    return now->ranks.receive(peer, kinds, now->settings.receive);
  }

  // By address.
  Result<int> dial(const std::string& ip, uint16_t port);
  Status send(const std::string& ip, MessageKind kind, const void* data, size_t size);
  Status receive(const std::string& ip, MessageKind kind, void* data, size_t size);

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<Running> running_;  // guarded by mutex_
};

Result<int> CtrlSocketManager::Impl::dial(const std::string& ip, uint16_t port) {
  HMC_ASSIGN(auto now, running());
  auto peer = now->dialledAt(ip);
  if (!peer) {
    HMC_ASSIGN(peer, now->node->connectPatiently(tcpAddress(ip, port), {}, now->settings.connect));
  }
  std::lock_guard lock(now->mutex);
  if (std::exchange(now->dialled[ip], peer) == peer) return now->numbers[ip];
  return now->numbers[ip] = static_cast<int>(now->numbers.size()) + 1;
}

Status CtrlSocketManager::Impl::send(const std::string& ip, MessageKind kind, const void* data,
                                     size_t size) {
  HMC_TRY(checkPointer(data, size));
  HMC_ASSIGN(auto now, running());
  auto peer = now->dialledAt(ip);
  if (!peer) {
    auto fromThere = [&](const PeerState& one) { return now->hears(one, ip); };
    HMC_ASSIGN(peer, now->node->waitForPeer(fromThere, "a peer at " + ip, Deadline::now()));
  }
  return peer->channel().send(kind, 0, {static_cast<const char*>(data), size},
                              now->settings.transfer);
}

Status CtrlSocketManager::Impl::receive(const std::string& ip, MessageKind kind, void* data,
                                        size_t size) {
  HMC_TRY(checkPointer(data, size));
  HMC_ASSIGN(auto now, running());
  Deadline deadline(now->settings.receive);
  auto fromThere = [&](const PeerState& peer) { return now->hears(peer, ip); };
  if (auto left = now->sessions->departed(
          [&](const PeerState& peer) { return fromThere(peer) && peer.channel().unread(kind); })) {
    return unpack(left->channel().receive(kind, Deadline::now()), data, size);
  }
  HMC_TRY(now->node->waitForPeer(fromThere, "a peer at " + ip, deadline).status());
  for (;;) {
    auto peers = now->node->peers();
    std::erase_if(peers, [&](const auto& peer) { return !fromThere(*peer); });
    if (peers.empty()) return error(Code::disconnected, "the peer at {} went away", ip);
    for (const auto& peer : peers) {
      auto turn = peers.size() == 1 ? deadline : earlier(deadline, Deadline(kTurn));
      auto message = peer->channel().receive(kind, turn);
      bool nothingYet = message.status().code() == Code::deadlineExceeded && !deadline.passed();
      if (!nothingYet) return unpack(message, data, size);
    }
  }
}

CtrlSocketManager& CtrlSocketManager::instance() {
  static CtrlSocketManager manager;
  return manager;
}

CtrlSocketManager::CtrlSocketManager() : impl_(std::make_unique<Impl>()) {}
CtrlSocketManager::~CtrlSocketManager() = default;

CtrlResult CtrlSocketManager::start(const std::string& bind_ip, uint16_t tcp_port,
                                    const std::string& uds_path) {
  return report(impl_->start(bind_ip, tcp_port, uds_path));
}

void CtrlSocketManager::stop() {
  if (auto now = impl_->current()) now->listeners.closeAll();
}
bool CtrlSocketManager::isServer() const {
  auto now = impl_->current();
  return now && now->listeners.any();
}

CtrlResult CtrlSocketManager::connectTcp(CtrlId peer_id, const std::string& ip, uint16_t port,
                                         CtrlId self_id) {
  return report(impl_->connect(peer_id, tcpAddress(ip, port), self_id));
}

CtrlResult CtrlSocketManager::connectUds(CtrlId peer_id, const std::string& uds_path,
                                         CtrlId self_id) {
  return report(impl_->connect(peer_id, unixAddress(uds_path, peer_id), self_id));
}

std::string CtrlSocketManager::udsPathFor(const std::string& dir, CtrlId peer_id) {
  return udsPath(dir, peer_id);
}

CtrlResult CtrlSocketManager::send(CtrlId peer_id, CtrlMsgType type, const void* payload,
                                   size_t len, uint16_t flags) {
  auto kind = kindOf(type, len);
  if (!kind.ok()) return report(kind.status());
  return report(impl_->send(peer_id, *kind, flags, payload, len));
}

CtrlResult CtrlSocketManager::recv(CtrlId peer_id, CtrlMsgHeader& hdr,
                                   std::vector<uint8_t>& payload) {
  auto message = impl_->receiveAny(peer_id);
  if (!message.ok()) return report(message.status());
  bool structure = message->kind == MessageKind::structure;
  hdr = {static_cast<uint16_t>(structure ? CTRL_STRUCT : CTRL_INT), message->flags,
         static_cast<uint32_t>(message->payload.size())};
  payload.assign(message->payload.begin(), message->payload.end());
  return status_t::SUCCESS;
}

CtrlResult CtrlSocketManager::sendInt(CtrlId peer_id, int value) {
  return report(impl_->send(peer_id, MessageKind::integer, 0, &value, sizeof(value)));
}

CtrlResult CtrlSocketManager::recvInt(CtrlId peer_id, int& value) {
  return report(impl_->receive(peer_id, MessageKind::integer, &value, sizeof(value)));
}

CtrlResult CtrlSocketManager::sendU64(CtrlId peer_id, uint64_t value) {
  return report(impl_->send(peer_id, MessageKind::tag, 0, &value, sizeof(value)));
}

CtrlResult CtrlSocketManager::recvU64(CtrlId peer_id, uint64_t& value) {
  return report(impl_->receive(peer_id, MessageKind::tag, &value, sizeof(value)));
}

CtrlResult CtrlSocketManager::sendObject(CtrlId peer_id, const void* object, size_t size) {
  return report(impl_->send(peer_id, MessageKind::structure, 0, object, size));
}

CtrlResult CtrlSocketManager::recvObject(CtrlId peer_id, void* object, size_t size) {
  return report(impl_->receive(peer_id, MessageKind::structure, object, size));
}

void CtrlSocketManager::close(CtrlId peer_id) {
  if (auto now = impl_->current()) now->ranks.close(peer_id);
}
void CtrlSocketManager::closeAll() {
  impl_->closeAll();
}

CtrlResult CtrlSocketManager::startServer(const std::string& bind_ip, uint16_t port) {
  return start(bind_ip, port, "");
}

void CtrlSocketManager::stopServer() {
  stop();
}
uint16_t CtrlSocketManager::port() const {
  auto now = impl_->current();
  return now ? now->listeners.firstTcpPort() : 0;
}

int CtrlSocketManager::getCtrlSockFd(const std::string& ip, uint16_t port) {
  auto number = impl_->dial(ip, port);
  report(number.status());
  return number.ok() ? *number : -1;
}

CtrlResult CtrlSocketManager::sendCtrlInt(const std::string& ip, int value) {
  return report(impl_->send(ip, MessageKind::integer, &value, sizeof(value)));
}

CtrlResult CtrlSocketManager::recvCtrlInt(const std::string& ip, int& value) {
  return report(impl_->receive(ip, MessageKind::integer, &value, sizeof(value)));
}

CtrlResult CtrlSocketManager::recvCtrlInt(const std::string& ip, int* value) {
  if (!value)
    return report(Status(Code::invalidArgument, "recvCtrlInt: the value's pointer is null"));
  return recvCtrlInt(ip, *value);
}

CtrlResult CtrlSocketManager::sendObject(const std::string& ip, const void* object, size_t size) {
  return report(impl_->send(ip, MessageKind::structure, object, size));
}

CtrlResult CtrlSocketManager::recvObject(const std::string& ip, void* object, size_t size) {
  return report(impl_->receive(ip, MessageKind::structure, object, size));
}

void CtrlSocketManager::closeConnection(const std::string& ip) {
  auto now = impl_->current();
  if (!now) return;
  {
    std::lock_guard lock(now->mutex);
    now->dialled.erase(ip);
  }
  for (const auto& peer : now->node->peers()) {
    if (peer->channel().remoteHost() != ip) continue;
    peer->close(error(Code::disconnected, "the connection to {} was closed here", ip));
  }
}

}  // namespace hmc
