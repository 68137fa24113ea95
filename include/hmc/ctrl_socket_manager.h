#pragma once

#include "hmc/cpp14.h"

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "hmc/export.h"
#include "hmc/status.h"

namespace hmc {

/// What a control message is.
enum CtrlMsgType : uint16_t { CTRL_INT = 0x01, CTRL_STRUCT = 0x02 };

/// What goes before a control message.
struct CtrlMsgHeader {
  uint16_t type;
  uint16_t flags;
  uint32_t length;
};

/// What the control methods return: it converts to bool and to status_t.
class CtrlResult {
 public:
  // NOLINTBEGIN(google-explicit-constructor): it stands in for the plain values of the manuals.
  CtrlResult(status_t status) : status_(status) {}                ///< Of a call that ended so.
  operator bool() const { return status_ == status_t::SUCCESS; }  ///< Whether it worked.
  operator status_t() const { return status_; }                   ///< How it ended.
  // NOLINTEND(google-explicit-constructor)

 private:
  status_t status_;
};

/// Small messages between ranks, over TCP or a unix socket. Messages are queued per peer and kind
/// from the moment the peer connects; receiving waits for the peer and for the message. instance()
/// is the process's default object, which the documentation uses; you may make others. Safe from
/// any thread. After a false, lastError() has the sentence.
class HMC_API CtrlSocketManager {
 public:
  using CtrlId = uint32_t;                        ///< The rank of a process.
  static constexpr uint16_t kDefaultPort = 5555;  ///< Of the first generation.

  static CtrlSocketManager& instance();  ///< The process's default object.
  CtrlSocketManager();                   ///< One of your own.
  ~CtrlSocketManager();                  ///< Closes everything.
  CtrlSocketManager(const CtrlSocketManager&) = delete;
  CtrlSocketManager& operator=(const CtrlSocketManager&) = delete;

  /// Port 0 means no TCP, an empty path no unix socket. Listeners that are already open stay open.
  CtrlResult start(const std::string& bind_ip, uint16_t tcp_port, const std::string& uds_path = "");
  void stop();            ///< Ends all listeners.
  bool isServer() const;  ///< Whether it listens.

  /// Connects to a listener; `self_id` is who we are there.
  CtrlResult connectTcp(CtrlId peer_id, const std::string& ip, uint16_t port, CtrlId self_id);
  /// The same through a unix socket.
  CtrlResult connectUds(CtrlId peer_id, const std::string& uds_path, CtrlId self_id);
  /// DIR/hmc_ctrl_rank_ID.sock
  static std::string udsPathFor(const std::string& dir, CtrlId peer_id);

  /// One message of that type.
  CtrlResult send(CtrlId peer_id, CtrlMsgType type, const void* payload, size_t len,
                  uint16_t flags = 0);
  /// The next message of either type.
  CtrlResult recv(CtrlId peer_id, CtrlMsgHeader& hdr, std::vector<uint8_t>& payload);
  CtrlResult sendInt(CtrlId peer_id, int value);        ///< One number.
  CtrlResult recvInt(CtrlId peer_id, int& value);       ///< Waits for one number.
  CtrlResult sendU64(CtrlId peer_id, uint64_t value);   ///< One number of 64 bits.
  CtrlResult recvU64(CtrlId peer_id, uint64_t& value);  ///< Waits for one number of 64 bits.
  /// Plain bytes.
  template <class T>
  CtrlResult sendStruct(CtrlId peer_id, const T& object) {
    static_assert(std::is_trivially_copyable<T>::value, "only plain bytes can be sent");
    return sendObject(peer_id, &object, sizeof(T));
  }
  /// Waits for as many plain bytes.
  template <class T>
  CtrlResult recvStruct(CtrlId peer_id, T& object) {
    static_assert(std::is_trivially_copyable<T>::value, "only plain bytes can be received");
    return recvObject(peer_id, &object, sizeof(T));
  }
  void close(CtrlId peer_id);  ///< Closes the connection to that peer.
  void closeAll();             ///< Closes all connections.

  /// The first generation: peers are named by their address.
  CtrlResult startServer(const std::string& bind_ip, uint16_t port = kDefaultPort);
  void stopServer();      ///< Ends the listener.
  uint16_t port() const;  ///< Where it listens; 0: nowhere.
  /// Connects, or finds the existing connection. Returns a number above 0 that identifies the
  /// connection (it is not a descriptor to read or write), or -1 on failure.
  int getCtrlSockFd(const std::string& ip, uint16_t port = kDefaultPort);
  CtrlResult sendCtrlInt(const std::string& ip, int value);   ///< One number.
  CtrlResult recvCtrlInt(const std::string& ip, int& value);  ///< Waits for one number.
  CtrlResult recvCtrlInt(const std::string& ip, int* value);  ///< Waits for one number.
  /// Plain bytes.
  template <class T>
  CtrlResult sendCtrlStruct(const std::string& ip, const T& object) {
    static_assert(std::is_trivially_copyable<T>::value, "only plain bytes can be sent");
    return sendObject(ip, &object, sizeof(T));
  }
  /// Waits for as many plain bytes.
  template <class T>
  CtrlResult recvCtrlStruct(const std::string& ip, T& object) {
    static_assert(std::is_trivially_copyable<T>::value, "only plain bytes can be received");
    return recvObject(ip, &object, sizeof(T));
  }
  void closeConnection(const std::string& ip);  ///< Closes the connection to that address.

 private:
  CtrlResult sendObject(CtrlId peer_id, const void* object, size_t size);
  CtrlResult recvObject(CtrlId peer_id, void* object, size_t size);
  CtrlResult sendObject(const std::string& ip, const void* object, size_t size);
  CtrlResult recvObject(const std::string& ip, void* object, size_t size);

  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hmc
