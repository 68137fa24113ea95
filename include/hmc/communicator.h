#pragma once

#include "hmc/cpp14.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hmc/conn_buffer.h"
#include "hmc/conn_type.h"
#include "hmc/ctrl_socket_manager.h"
#include "hmc/export.h"
#include "hmc/status.h"

namespace hmc {

/// One-sided transfers between this process's ConnBuffer and those of its peers. A peer is named by
/// its address and the port that it listens on for data. A peer that does not listen has port 0,
/// or, if several such peers share a host, the source port of its connection. put, get and wait
/// return when the bytes are visible at the other side. Without a timeout, a call uses that of the
/// environment (docs/gotchas.md). Safe from any thread. After anything but SUCCESS, lastError() has
/// the sentence.
class HMC_API Communicator {
 public:
  /// The rank of a process, as the control methods name it.
  using CtrlId = CtrlSocketManager::CtrlId;
  /// What control messages go through.
  enum class CtrlTransport : uint8_t { TCP = 0, UDS = 1 };
  /// Where a peer listens for control messages.
  struct CtrlLink {
    CtrlTransport transport{CtrlTransport::TCP};
    std::string ip;
    uint16_t port{0};
    std::string uds_path;
  };
  using Timeout = std::chrono::milliseconds;  ///< How long a call may wait.
  /// A negative timeout means the one of the environment.
  static Timeout usualTimeout() { return Timeout(-1); }

  /// num_chs is 1 to 16: RDMA queue pairs to each peer. Other transports ignore it.
  explicit Communicator(std::shared_ptr<ConnBuffer> buffer, size_t num_chs = 1);
  ~Communicator();  ///< Closes every connection.
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// SUCCESS, or what every call returns because the constructor's arguments were invalid.
  status_t status() const;
  /// The environment's timeouts: of put, get and wait, and of ctrlRecv.
  Timeout usualTransferTimeout() const;
  Timeout usualReceiveTimeout() const;  ///< The one of ctrlRecv.
  /// Closes every connection. Calls that are waiting return, and later calls fail.
  void close();

  /// Our bytes from local_off go to the peer's buffer, to remote_off.
  status_t put(const std::string& ip, uint16_t port, size_t local_off, size_t remote_off,
               size_t size, ConnType connType = ConnType::RDMA);
  /// The peer's bytes from remote_off come to our buffer, to local_off.
  status_t get(const std::string& ip, uint16_t port, size_t local_off, size_t remote_off,
               size_t size, ConnType connType = ConnType::RDMA);
  /// If this is a plain copy of up to a megabyte, to or from memory that is mapped here and that
  /// this thread has used before: does it and returns true. Otherwise returns false: call put() or
  /// get().
  bool tryPut(const std::string& ip, uint16_t port, size_t local_off, size_t remote_off,
              size_t size, ConnType connType);
  /// As tryPut(), the other way.
  bool tryGet(const std::string& ip, uint16_t port, size_t local_off, size_t remote_off,
              size_t size, ConnType connType);
  /// *wr_id is for wait(); 0 means that it is already done.
  status_t putNB(const std::string& ip, uint16_t port, size_t local_off, size_t remote_off,
                 size_t size, uint64_t* wr_id, ConnType connType = ConnType::RDMA);
  /// As putNB(), the other way.
  status_t getNB(const std::string& ip, uint16_t port, size_t local_off, size_t remote_off,
                 size_t size, uint64_t* wr_id, ConnType connType = ConnType::RDMA);
  /// TIMEOUT leaves the id valid: wait again.
  status_t wait(uint64_t wr_id, Timeout timeout = usualTimeout());
  /// Waits for all, also after a failure; returns the first failure.
  status_t wait(const std::vector<uint64_t>& wr_ids, Timeout timeout = usualTimeout());
  /// One transfer in chunks of chunk_size bytes (0: 4 MiB), max_inflight of them under way at a
  /// time: as soon as one has ended, the next one starts.
  status_t putPipeline(const std::string& ip, uint16_t port, size_t local_off, size_t remote_off,
                       size_t size, size_t chunk_size = 0, size_t max_inflight = 64,
                       ConnType connType = ConnType::RDMA);
  /// As putPipeline(), the other way.
  status_t getPipeline(const std::string& ip, uint16_t port, size_t local_off, size_t remote_off,
                       size_t size, size_t chunk_size = 0, size_t max_inflight = 64,
                       ConnType connType = ConnType::RDMA);

  /// Two-sided: any memory to any memory. Overwrites both ConnBuffers, which the bytes pass
  /// through. *flag is the number of bytes received.
  status_t sendDataTo(const std::string& ip, uint16_t port, void* send_buf, size_t buf_size,
                      MemoryType buf_type, ConnType connType = ConnType::RDMA);
  /// Waits for what the peer sends by sendDataTo().
  status_t recvDataFrom(const std::string& ip, uint16_t port, void* recv_buf, size_t buf_size,
                        MemoryType buf_type, size_t* flag, ConnType connType = ConnType::RDMA);

  /// Tags between ranks. A tag arrives after the data of every put before it.
  status_t ctrlSend(CtrlId peer, uint64_t tag);
  /// Waits for the next tag of that peer.
  status_t ctrlRecv(CtrlId peer, uint64_t* tag, Timeout timeout = usualTimeout());

  /// Listens for control messages: port 0 means no TCP, an empty path no unix socket.
  status_t initCtrlServer(const std::string& bind_ip, uint16_t tcp_port,
                          const std::string& uds_path = "");
  status_t closeCtrl();  ///< Closes all control connections and listeners.
  /// Connects to a peer's control listener; `self_id` is who we are there.
  status_t connectCtrl(CtrlId peer_id, CtrlId self_id, const CtrlLink& link);
  status_t closeCtrlPeer(CtrlId peer_id);  ///< Closes the control connection to one peer.
  /// The unix socket of that rank in a folder: hmc_ctrl_rank_ID.sock
  static std::string udsPathFor(const std::string& dir, CtrlId peer_id);

  /// May be called again for another type or port.
  status_t initServer(const std::string& bind_ip, uint16_t data_port, uint16_t ctrl_tcp_port,
                      const std::string& ctrl_uds_path, ConnType serverType);
  /// At a port that the system picks, one for each ip: *port says which.
  status_t initServer(const std::string& ip, uint16_t* port);
  status_t closeServer();  ///< Ends all listeners for data; connections that there are stay.
  /// Waits for a peer that has not started yet. SUCCESS if already connected.
  status_t connectTo(CtrlId peer_id, CtrlId self_id, const std::string& peer_ip, uint16_t data_port,
                     const CtrlLink& ctrl_link, ConnType connType,
                     Timeout timeout = usualTimeout());
  /// Closes the connection to that peer.
  status_t disConnect(const std::string& ip, uint16_t port, ConnType connType);
  /// SUCCESS while it is connected.
  status_t checkConn(const std::string& ip, uint16_t port, ConnType connType);

  /// The first generation: a peer is named by its address alone, and offsets are the same on both
  /// sides. A server may name a client that has not connected yet: the call waits for it. A client
  /// that leaves lets its server finish what it reads.
  status_t initServer(const std::string& ip, uint16_t port, ConnType serverType);
  /// As above, for a peer that is named by its address alone.
  status_t connectTo(const std::string& ip, uint16_t port, ConnType connType,
                     Timeout timeout = usualTimeout());
  /// Our bytes from ptr_bias go to the same place of the peer's buffer.
  status_t writeTo(const std::string& ip, size_t ptr_bias, size_t size,
                   ConnType connType = ConnType::RDMA);
  /// The peer's bytes from ptr_bias come to the same place of our buffer.
  status_t readFrom(const std::string& ip, size_t ptr_bias, size_t size,
                    ConnType connType = ConnType::RDMA);
  /// Two-sided, as above.
  status_t sendDataTo(const std::string& ip, void* send_buf, size_t buf_size, MemoryType buf_type,
                      ConnType connType = ConnType::RDMA);
  /// Two-sided, as above.
  status_t recvDataFrom(const std::string& ip, void* recv_buf, size_t buf_size, MemoryType buf_type,
                        size_t* flag, ConnType connType = ConnType::RDMA);
  /// Closes the connection to that address.
  status_t disConnect(const std::string& ip, ConnType connType);
  status_t checkConn(const std::string& ip, ConnType connType);  ///< SUCCESS while it is connected.

  /// One line for each transport: whether it serves the peer and why or why not, and the time of a
  /// put of the whole buffer.
  std::string explain(const std::string& ip, uint16_t port);
  /// What carries a connection of that type: "ipc (mapped)", "verbs"; or why there is none.
  std::string path(const std::string& ip, uint16_t port, ConnType connType);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
  Status whyNot_;  ///< of a Communicator without impl_
};

}  // namespace hmc
