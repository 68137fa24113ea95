#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "api/sessions.h"
#include "api/settings.h"
#include "hmc/conn_type.h"

namespace hmc {

// The name under which every Communicator registers its buffer.
inline constexpr const char* kBufferRegion = "hmc.buffer";

// Held by sendDataTo() and by recvDataFrom(): each one at a time with one peer, over all types.
struct BulkTurns {
  std::mutex send;
  std::mutex receive;
};

// A peer's buffer, reachable.
struct Connection {
  std::shared_ptr<PeerState> peer;
  std::shared_ptr<RemoteMapping> buffer;
  std::shared_ptr<BulkTurns> turns;
  std::atomic<bool> toldWrote{false};  // ClientStage::wrote
  std::atomic<bool> ended{false};      // its link is gone: the next find() opens another
};

// How the documented calls name a connection.
struct Target {
  const std::string& ip;
  uint16_t port;  // of the peer's data
  ConnType type;
};

// Connections by what the documented calls name. Safe from any thread.
class Connections {
 public:
  Connections(std::shared_ptr<NodeImpl> node, std::shared_ptr<Sessions> sessions, Settings settings)
      : node_(std::move(node)), sessions_(std::move(sessions)), settings_(std::move(settings)) {}

  // Opens the buffer of a peer that we know, under that name.
  Result<std::shared_ptr<Connection>> open(const std::shared_ptr<PeerState>& peer,
                                           const Target& target, Deadline deadline);
  // The connection of that name: one that was opened, or a connected peer that answers to the
  // address. notFound says what is connected.
  Result<std::shared_ptr<Connection>> find(const Target& target);
  // The same if this thread asked for it last and nothing has changed since, else null.
  std::shared_ptr<Connection> findAgain(const Target& target) const {
    const Recent& last = recent();
    if (last.version != version_.load(std::memory_order_acquire) || !last.key.is(target))
      return nullptr;
    auto connection = last.connection.lock();
    return connection && !connection->ended.load(std::memory_order_relaxed) ? connection : nullptr;
  }
  // By address alone: the last one dialled so, else the only peer from there.
  Result<std::shared_ptr<Connection>> find(const std::string& ip, ConnType type);
  void remember(const std::string& ip, uint16_t port);

  // Ok, notFound, or why the connection that was there ended.
  Status check(const Target& target);
  Status check(const std::string& ip, ConnType type);

  // Forgets the name and, when no other uses the peer, closes the channel to it.
  void close(const Target& target);
  void close(const std::string& ip, ConnType type);

  // Returns when a peer is connected from that address and, if it is one of the first generation,
  // has written or had a moment to do so.
  Status waitFor(const std::string& ip, Deadline deadline);

  // Connected peers that answer to an address.
  std::vector<std::shared_ptr<PeerState>> peersAt(const std::string& ip) const;

 private:
  struct Key {
    std::string ip;
    uint16_t port;
    ConnType type;
    auto operator<=>(const Key&) const = default;  // NOLINT
    bool is(const Target& target) const {
      return port == target.port && type == target.type && ip == target.ip;
    }
  };
  // What a thread looked up last: the way to a peer is most often the way that was taken before,
  // and the table's lock is one that all threads write to. It holds nothing alive.
  struct Recent {
    uint64_t version = 0;
    Key key{"", 0, ConnType::AUTO};
    std::weak_ptr<Connection> connection;
  };
  static Recent& recent();
  static uint64_t nextVersion();

  std::shared_ptr<Connection> known(const Target& target) const;
  Status ambiguous(const std::string& ip,
                   const std::vector<std::shared_ptr<PeerState>>& peers) const;
  Status nobody(const std::string& what) const;
  void closeIfUnused(const std::shared_ptr<PeerState>& peer);
  void warnOnce(ConnType type, const std::string& why, const std::string& instead);

  const std::shared_ptr<NodeImpl> node_;
  const std::shared_ptr<Sessions> sessions_;
  const Settings settings_;
  // Changes with table_, and no two tables of this process ever have the same.
  std::atomic<uint64_t> version_{nextVersion()};
  mutable std::shared_mutex mutex_;
  std::map<Key, std::shared_ptr<Connection>> table_;  // guarded by mutex_
  std::map<std::string, uint16_t> dialled_;           // guarded by mutex_: port by address
  std::map<ConnType, bool> warned_;                   // guarded by mutex_
};

}  // namespace hmc
