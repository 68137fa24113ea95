#include "api/ctrl_impl.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace hmc {

namespace {

// Several peers can share an address: how long to listen to one before looking at the next.
constexpr std::chrono::milliseconds kTurn{10};

Status unpack(const Message& message, void* data, size_t size) {
  if (message.payload.size() != size) {
    return error(Code::invalidArgument, "the message has {} bytes, {} were expected",
                 message.payload.size(), size);
  }
  std::memcpy(data, message.payload.data(), size);
  return Status();
}

Status unpack(const Result<Message>& message, void* data, size_t size) {
  HMC_TRY(message.status());
  return unpack(*message, data, size);
}

// When a process dials itself it has both ends; what was sent arrives at the one that was dialled.
bool hears(const NodeImpl& node, const PeerState& peer, const std::string& ip) {
  bool ownDial = peer.channel().initiator() && peer.channel().peer().id == node.id();
  return peer.channel().remoteHost() == ip && !ownDial;
}

}  // namespace

std::shared_ptr<CtrlSocketManager::Impl::Running> CtrlSocketManager::Impl::current() const {
  std::lock_guard lock(mutex_);
  return running_;
}

Result<std::shared_ptr<CtrlSocketManager::Impl::Running>> CtrlSocketManager::Impl::running() {
  std::lock_guard lock(mutex_);
  if (!running_) {
    HMC_ASSIGN(Settings settings, Settings::fromEnvironment());
    auto sessions = std::make_shared<Sessions>();
    HMC_ASSIGN(auto node, NodeImpl::create(settings.node, makeTransports, sessions));
    running_ = std::make_shared<Running>(std::move(settings), std::move(sessions), std::move(node));
  }
  return running_;
}

Status CtrlSocketManager::Impl::start(const std::string& ip, uint16_t port,
                                      const std::string& path) {
  HMC_ASSIGN(auto now, running());
  return now->listeners.open(controlListeners(ip, port, path));
}

void CtrlSocketManager::Impl::stop() {
  if (auto now = current()) now->listeners.closeAll();
}

bool CtrlSocketManager::Impl::isServer() const {
  auto now = current();
  return now && now->listeners.any();
}

uint16_t CtrlSocketManager::Impl::port() const {
  auto now = current();
  return now ? now->listeners.firstTcpPort() : 0;
}

Status CtrlSocketManager::Impl::connect(CtrlId peer, const std::string& address, CtrlId self) {
  HMC_ASSIGN(auto now, running());
  HMC_ASSIGN(auto found, dialPatiently(*now->node, address, self, now->settings.connect));
  now->ranks.bind(peer, found);
  return Status();
}

Result<MessageKind> CtrlSocketManager::Impl::kindOf(CtrlMsgType type, size_t size) {
  if (type == CTRL_STRUCT) return MessageKind::structure;
  if (type == CTRL_INT && size == sizeof(int)) return MessageKind::integer;
  if (type == CTRL_INT && size == sizeof(uint64_t)) return MessageKind::tag;
  return error(Code::invalidArgument, "a control message of type {} cannot have {} bytes",
               static_cast<int>(type), size);
}

Status CtrlSocketManager::Impl::send(CtrlId peer, MessageKind kind, uint16_t flags,
                                     const void* data, size_t size) {
  HMC_ASSIGN(auto now, running());
  return now->ranks.send(peer, kind, flags, {static_cast<const char*>(data), size},
                         now->settings.transfer);
}

Status CtrlSocketManager::Impl::receive(CtrlId peer, MessageKind kind, void* data, size_t size) {
  HMC_ASSIGN(auto now, running());
  if (now->ranks.tryReceive(peer, kind, data, size)) return Status();
  return unpack(now->ranks.receive(peer, kind, now->settings.receive), data, size);
}

Result<Message> CtrlSocketManager::Impl::receiveAny(CtrlId peer) {
  HMC_ASSIGN(auto now, running());
  KindSet kinds{MessageKind::integer, MessageKind::tag, MessageKind::structure};
  return now->ranks.receive(peer, kinds, now->settings.receive);
}

void CtrlSocketManager::Impl::close(CtrlId peer) {
  if (auto now = current()) now->ranks.close(peer);
}

void CtrlSocketManager::Impl::closeAll() {
  std::shared_ptr<Running> last;
  std::lock_guard lock(mutex_);
  last.swap(running_);
}

Result<int> CtrlSocketManager::Impl::dial(const std::string& ip, uint16_t port) {
  HMC_ASSIGN(auto now, running());
  {
    std::lock_guard lock(now->mutex);
    auto before = now->dialled.find(ip);
    if (before != now->dialled.end() && before->second->channel().status().ok())
      return now->numbers[ip];
  }
  HMC_ASSIGN(auto peer, dialPatiently(*now->node, tcpAddress(ip, port), {}, now->settings.connect));
  std::lock_guard lock(now->mutex);
  now->dialled[ip] = peer;
  return now->numbers[ip] = static_cast<int>(now->numbers.size()) + 1;
}

Status CtrlSocketManager::Impl::send(const std::string& ip, MessageKind kind, const void* data,
                                     size_t size) {
  HMC_ASSIGN(auto now, running());
  std::shared_ptr<PeerState> peer;
  {
    std::lock_guard lock(now->mutex);
    auto dialled = now->dialled.find(ip);
    if (dialled != now->dialled.end()) peer = dialled->second;
  }
  if (!peer || !peer->channel().status().ok()) {
    auto fromThere = [&](const PeerState& one) { return hears(*now->node, one, ip); };
    HMC_ASSIGN(peer, now->node->waitForPeer(fromThere, "a peer at " + ip, Deadline::now()));
  }
  return peer->channel().send(kind, 0, {static_cast<const char*>(data), size},
                              now->settings.transfer);
}

Status CtrlSocketManager::Impl::receive(const std::string& ip, MessageKind kind, void* data,
                                        size_t size) {
  HMC_ASSIGN(auto now, running());
  Deadline deadline(now->settings.receive);
  auto fromThere = [&](const PeerState& peer) { return hears(*now->node, peer, ip); };
  if (auto left = now->sessions->departed(
          [&](const PeerState& peer) { return fromThere(peer) && peer.channel().unread(kind); })) {
    return unpack(left->channel().receive(kind, Deadline::now()), data, size);
  }
  HMC_TRY(now->node->waitForPeer(fromThere, "a peer at " + ip, deadline).status());
  for (;;) {
    auto peers = now->node->peers();
    peers.erase(std::remove_if(peers.begin(), peers.end(),
                               [&](const auto& peer) { return !fromThere(*peer); }),
                peers.end());
    if (peers.empty()) return error(Code::disconnected, "the peer at {} went away", ip);
    for (const auto& peer : peers) {
      auto turn = peers.size() == 1 ? deadline : earlier(deadline, Deadline(kTurn));
      auto message = peer->channel().receive(kind, turn);
      bool nothingYet = message.status().code() == Code::deadlineExceeded && !deadline.passed();
      if (!nothingYet) return unpack(message, data, size);
    }
  }
}

void CtrlSocketManager::Impl::close(const std::string& ip) {
  auto now = current();
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
