#pragma once

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

// One-sided transfers between this process's ConnBuffer and its peers'. A peer is called by its
// address and the port that it listens on for data; a peer that listens on nothing by port 0, or by
// the port that its connection comes from where several such peers share a host. put, get and wait
// return when the bytes are visible at the other side. A call that is given no timeout takes that
// of the environment (docs/gotchas.md). Safe from any thread. The sentence behind anything but
// SUCCESS is lastError().
class HMC_API Communicator {
 public:
  using CtrlId = CtrlSocketManager::CtrlId;
  enum class CtrlTransport : uint8_t { TCP = 0, UDS = 1 };
  struct CtrlLink {
    CtrlTransport transport{CtrlTransport::TCP};
    std::string ip;
    uint16_t port{0};
    std::string uds_path;
  };
  using Timeout = std::chrono::milliseconds;
  static constexpr int kUsual = -1;  // a negative Timeout: that of the environment

  // num_chs is 1 to 16: RDMA queue pairs to each peer. The other transports choose by themselves.
  explicit Communicator(std::shared_ptr<ConnBuffer> buffer, size_t num_chs = 1);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // SUCCESS, or what every call answers because the constructor's arguments were not good.
  status_t status() const;
  // Of put, get and wait, and of ctrlRecv.
  Timeout usualTransferTimeout() const;
  Timeout usualReceiveTimeout() const;
  // Says goodbye to everybody. Whoever waits in a call wakes up, and later calls fail.
  void close();

  status_t put(const std::string& ip, uint16_t port, size_t local_off, size_t remote_off,
               size_t size, ConnType connType = ConnType::RDMA);
  status_t get(const std::string& ip, uint16_t port, size_t local_off, size_t remote_off,
               size_t size, ConnType connType = ConnType::RDMA);
  // Do it and answer true where that is a plain copy, up to a megabyte, into or out of memory which
  // is mapped here and was used by this thread before. False says nothing: put() and get() do.
  bool tryPut(const std::string& ip, uint16_t port, size_t local_off, size_t remote_off,
              size_t size, ConnType connType);
  bool tryGet(const std::string& ip, uint16_t port, size_t local_off, size_t remote_off,
              size_t size, ConnType connType);
  // *wr_id is for wait(); 0 means that it is done already.
  status_t putNB(const std::string& ip, uint16_t port, size_t local_off, size_t remote_off,
                 size_t size, uint64_t* wr_id, ConnType connType = ConnType::RDMA);
  status_t getNB(const std::string& ip, uint16_t port, size_t local_off, size_t remote_off,
                 size_t size, uint64_t* wr_id, ConnType connType = ConnType::RDMA);
  // TIMEOUT leaves the id valid: wait again.
  status_t wait(uint64_t wr_id, Timeout timeout = Timeout(kUsual));
  // Waits for all; the first failure is returned, the others are waited for all the same.
  status_t wait(const std::vector<uint64_t>& wr_ids, Timeout timeout = Timeout(kUsual));
  // One transfer in chunks. The window is the transport's own; max_inflight must be above 0.
  status_t putPipeline(const std::string& ip, uint16_t port, size_t local_off, size_t remote_off,
                       size_t size, size_t chunk_size = 0, size_t max_inflight = 64,
                       ConnType connType = ConnType::RDMA);
  status_t getPipeline(const std::string& ip, uint16_t port, size_t local_off, size_t remote_off,
                       size_t size, size_t chunk_size = 0, size_t max_inflight = 64,
                       ConnType connType = ConnType::RDMA);

  // Two-sided: any memory to any memory, through both ConnBuffers, whose contents they overwrite.
  // *flag is the number of bytes received.
  status_t sendDataTo(const std::string& ip, uint16_t port, void* send_buf, size_t buf_size,
                      MemoryType buf_type, ConnType connType = ConnType::RDMA);
  status_t recvDataFrom(const std::string& ip, uint16_t port, void* recv_buf, size_t buf_size,
                        MemoryType buf_type, size_t* flag, ConnType connType = ConnType::RDMA);

  // Tags between ranks. A tag arrives after the data of every put before it.
  status_t ctrlSend(CtrlId peer, uint64_t tag);
  status_t ctrlRecv(CtrlId peer, uint64_t* tag, Timeout timeout = Timeout(kUsual));

  status_t initCtrlServer(const std::string& bind_ip, uint16_t tcp_port,
                          const std::string& uds_path = "");
  status_t closeCtrl();
  status_t connectCtrl(CtrlId peer_id, CtrlId self_id, const CtrlLink& link);
  status_t closeCtrlPeer(CtrlId peer_id);
  static std::string udsPathFor(const std::string& dir, CtrlId peer_id);

  // May be called again for another type or port.
  status_t initServer(const std::string& bind_ip, uint16_t data_port, uint16_t ctrl_tcp_port,
                      const std::string& ctrl_uds_path, ConnType serverType);
  status_t closeServer();
  // Waits for the peer to come up for a while. Connected already is SUCCESS.
  status_t connectTo(CtrlId peer_id, CtrlId self_id, const std::string& peer_ip, uint16_t data_port,
                     const CtrlLink& ctrl_link, ConnType connType,
                     Timeout timeout = Timeout(kUsual));
  status_t disConnect(const std::string& ip, uint16_t port, ConnType connType);
  status_t checkConn(const std::string& ip, uint16_t port, ConnType connType);

  // The first generation: a peer is called by its address alone, and offsets are the same on both
  // sides. A server may name a visitor that is yet to come: the call waits for it. A client that
  // goes lets its server finish what it reads.
  status_t initServer(const std::string& ip, uint16_t port, ConnType serverType);
  status_t connectTo(const std::string& ip, uint16_t port, ConnType connType,
                     Timeout timeout = Timeout(kUsual));
  status_t writeTo(const std::string& ip, size_t ptr_bias, size_t size,
                   ConnType connType = ConnType::RDMA);
  status_t readFrom(const std::string& ip, size_t ptr_bias, size_t size,
                    ConnType connType = ConnType::RDMA);
  status_t sendDataTo(const std::string& ip, void* send_buf, size_t buf_size, MemoryType buf_type,
                      ConnType connType = ConnType::RDMA);
  status_t recvDataFrom(const std::string& ip, void* recv_buf, size_t buf_size, MemoryType buf_type,
                        size_t* flag, ConnType connType = ConnType::RDMA);
  status_t disConnect(const std::string& ip, ConnType connType);
  status_t checkConn(const std::string& ip, ConnType connType);

  // Which transport serves a peer and why each other one does not, and what a put of the whole
  // buffer takes: a line each.
  std::string explain(const std::string& ip, uint16_t port);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
  Status whyNot_;  // of a Communicator without impl_
};

}  // namespace hmc
