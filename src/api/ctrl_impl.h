#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "api/listeners.h"
#include "api/ranks.h"
#include "api/settings.h"
#include "hmc/ctrl_socket_manager.h"

namespace hmc {

// What a CtrlSocketManager stands on: a Node that it makes when it is first needed and drops in
// stop() and closeAll().
class CtrlSocketManager::Impl {
 public:
  Status start(const std::string& ip, uint16_t port, const std::string& path);
  void stop();
  bool isServer() const;
  uint16_t port() const;
  Status connect(CtrlId peer, const std::string& address, CtrlId self);

  // CTRL_INT carries ints and tags, told apart by their size.
  static Result<MessageKind> kindOf(CtrlMsgType type, size_t size);
  Status send(CtrlId peer, MessageKind kind, uint16_t flags, const void* data, size_t size);
  Status receive(CtrlId peer, MessageKind kind, void* data, size_t size);
  Result<Message> receiveAny(CtrlId peer);
  void close(CtrlId peer);
  void closeAll();

  // By address.
  Result<int> dial(const std::string& ip, uint16_t port);
  Status send(const std::string& ip, MessageKind kind, const void* data, size_t size);
  Status receive(const std::string& ip, MessageKind kind, void* data, size_t size);
  void close(const std::string& ip);

 private:
  struct Running {
    Running(Settings from, std::shared_ptr<Sessions> with, std::shared_ptr<NodeImpl> made)
        : settings(std::move(from)),
          sessions(std::move(with)),
          node(std::move(made)),
          listeners(node),
          ranks(node, sessions) {}
    ~Running() { node->close(); }
    const Settings settings;
    const std::shared_ptr<Sessions> sessions;
    const std::shared_ptr<NodeImpl> node;
    Listeners listeners;
    Ranks ranks;
    std::mutex mutex;
    std::map<std::string, std::shared_ptr<PeerState>> dialled;  // guarded by mutex, by address
    std::map<std::string, int> numbers;                         // guarded by mutex, by address
  };
  Result<std::shared_ptr<Running>> running();
  std::shared_ptr<Running> current() const;

  mutable std::mutex mutex_;
  std::shared_ptr<Running> running_;  // guarded by mutex_
};

}  // namespace hmc
