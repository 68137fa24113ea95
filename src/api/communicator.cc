#include "hmc/communicator.h"

#include <bit>

#include "api/communicator_impl.h"
#include "api/documented_types.h"
#include "base/codec.h"

namespace hmc {

namespace {

// A bad ConnType is the one mistake in an argument that has a status of its own.
status_t reportFor(ConnType type, const Status& status) {
  bool known = type >= ConnType::RDMA && type <= ConnType::AUTO;
  return known ? report(status) : report(status, status_t::INVALID_CONFIG);
}

Communicator::Timeout orUsual(Communicator::Timeout timeout, Communicator::Timeout usual) {
  return timeout.count() < 0 ? usual : timeout;
}

// To and from the order of bytes on the wire.
uint64_t littleEndian(uint64_t value) {
  return std::endian::native == std::endian::little ? value : __builtin_bswap64(value);
}

}  // namespace

// Every method goes through this: the Impl, or the reason why there is none or none of ours.
#define HMC_IMPL()                                                       \
  if (!impl_) return report(whyNot_);                                    \
  if (impl_->forkGuard().inChild()) return report(ForkGuard::refusal()); \
  Impl& impl = *impl_

Communicator::Communicator(std::shared_ptr<ConnBuffer> buffer, size_t num_chs) {
  auto made = Impl::create(std::move(buffer), num_chs);
  if (made.ok()) {
    impl_ = *std::move(made);
  } else {
    whyNot_ = made.status();
    report(whyNot_);
  }
}

Communicator::~Communicator() {
  // The threads that would have to end are not there.
  if (impl_ && impl_->forkGuard().inChild()) (void)impl_.release();
}

status_t Communicator::status() const {
  return report(whyNot_);
}

void Communicator::close() {
  if (impl_) impl_->close();
}

status_t Communicator::put(const std::string& ip, uint16_t port, size_t local_off,
                           size_t remote_off, size_t size, ConnType connType) {
  HMC_IMPL();
  return reportFor(connType,
                   impl.run(OpKind::put, {ip, port, connType}, {local_off, remote_off, size}));
}

status_t Communicator::get(const std::string& ip, uint16_t port, size_t local_off,
                           size_t remote_off, size_t size, ConnType connType) {
  HMC_IMPL();
  return reportFor(connType,
                   impl.run(OpKind::get, {ip, port, connType}, {local_off, remote_off, size}));
}

Communicator::Timeout Communicator::usualTransferTimeout() const {
  return impl_ ? impl_->settings().transfer : Timeout(0);
}

Communicator::Timeout Communicator::usualReceiveTimeout() const {
  return impl_ ? impl_->settings().receive : Timeout(0);
}

bool Communicator::tryPut(const std::string& ip, uint16_t port, size_t local_off, size_t remote_off,
                          size_t size, ConnType connType) {
  return impl_ &&
         impl_->runAtOnce(OpKind::put, {ip, port, connType}, {local_off, remote_off, size});
}

bool Communicator::tryGet(const std::string& ip, uint16_t port, size_t local_off, size_t remote_off,
                          size_t size, ConnType connType) {
  return impl_ &&
         impl_->runAtOnce(OpKind::get, {ip, port, connType}, {local_off, remote_off, size});
}

status_t Communicator::putNB(const std::string& ip, uint16_t port, size_t local_off,
                             size_t remote_off, size_t size, uint64_t* wr_id, ConnType connType) {
  HMC_IMPL();
  return reportFor(connType, impl.start(OpKind::put, {ip, port, connType},
                                        {local_off, remote_off, size}, wr_id));
}

status_t Communicator::getNB(const std::string& ip, uint16_t port, size_t local_off,
                             size_t remote_off, size_t size, uint64_t* wr_id, ConnType connType) {
  HMC_IMPL();
  return reportFor(connType, impl.start(OpKind::get, {ip, port, connType},
                                        {local_off, remote_off, size}, wr_id));
}

status_t Communicator::wait(uint64_t wr_id, Timeout timeout) {
  HMC_IMPL();
  return report(impl.wait(wr_id, orUsual(timeout, impl.settings().transfer)));
}

status_t Communicator::wait(const std::vector<uint64_t>& wr_ids, Timeout timeout) {
  HMC_IMPL();
  const Deadline deadline(orUsual(timeout, impl.settings().transfer));
  Status first;
  for (uint64_t id : wr_ids) {
    Status status = impl.wait(id, deadline);
    if (first.ok()) first = status;
  }
  return report(first);
}

status_t Communicator::putPipeline(const std::string& ip, uint16_t port, size_t local_off,
                                   size_t remote_off, size_t size, size_t chunk_size,
                                   size_t max_inflight, ConnType connType) {
  HMC_IMPL();
  return reportFor(
      connType, impl.runPipeline(OpKind::put, {ip, port, connType}, {local_off, remote_off, size},
                                 chunk_size, max_inflight));
}

status_t Communicator::getPipeline(const std::string& ip, uint16_t port, size_t local_off,
                                   size_t remote_off, size_t size, size_t chunk_size,
                                   size_t max_inflight, ConnType connType) {
  HMC_IMPL();
  return reportFor(
      connType, impl.runPipeline(OpKind::get, {ip, port, connType}, {local_off, remote_off, size},
                                 chunk_size, max_inflight));
}

status_t Communicator::sendDataTo(const std::string& ip, uint16_t port, void* send_buf,
                                  size_t buf_size, MemoryType buf_type, ConnType connType) {
  HMC_IMPL();
  return reportFor(connType, impl.sendData(impl.connections().find({ip, port, connType}), send_buf,
                                           buf_size, buf_type));
}

status_t Communicator::recvDataFrom(const std::string& ip, uint16_t port, void* recv_buf,
                                    size_t buf_size, MemoryType buf_type, size_t* flag,
                                    ConnType connType) {
  HMC_IMPL();
  return reportFor(connType, impl.receiveData(impl.connections().find({ip, port, connType}),
                                              recv_buf, buf_size, buf_type, flag));
}

status_t Communicator::ctrlSend(CtrlId peer, uint64_t tag) {
  HMC_IMPL();
  tag = littleEndian(tag);
  std::string_view payload(reinterpret_cast<const char*>(&tag), sizeof(tag));
  return report(impl.ranks().send(peer, MessageKind::tag, 0, payload, impl.settings().transfer));
}

status_t Communicator::ctrlRecv(CtrlId peer, uint64_t* tag, Timeout timeout) {
  HMC_IMPL();
  if (!tag) return report(Status(Code::invalidArgument, "ctrlRecv: tag is null"));
  if (uint64_t bytes = 0; impl.ranks().tryReceive(peer, MessageKind::tag, &bytes, sizeof(bytes))) {
    *tag = littleEndian(bytes);
    return status_t::SUCCESS;
  }
  auto message =
      impl.ranks().receive(peer, MessageKind::tag, orUsual(timeout, impl.settings().receive));
  if (message.ok()) *tag = Reader(message->payload).u64();
  return report(message.status());
}

status_t Communicator::initCtrlServer(const std::string& bind_ip, uint16_t tcp_port,
                                      const std::string& uds_path) {
  HMC_IMPL();
  return report(impl.listeners().open(controlListeners(bind_ip, tcp_port, uds_path)));
}

status_t Communicator::closeCtrl() {
  HMC_IMPL();
  impl.listeners().closeAll();
  return status_t::SUCCESS;
}

status_t Communicator::connectCtrl(CtrlId peer_id, CtrlId self_id, const CtrlLink& link) {
  HMC_IMPL();
  return report(impl.connectControl(peer_id, self_id, link, "", impl.settings().connect));
}

status_t Communicator::closeCtrlPeer(CtrlId peer_id) {
  HMC_IMPL();
  impl.ranks().close(peer_id);
  return status_t::SUCCESS;
}

std::string Communicator::udsPathFor(const std::string& dir, CtrlId peer_id) {
  return udsPath(dir, peer_id);
}

status_t Communicator::initServer(const std::string& bind_ip, uint16_t data_port,
                                  uint16_t ctrl_tcp_port, const std::string& ctrl_uds_path,
                                  ConnType serverType) {
  HMC_IMPL();
  Status usable = impl.checkType(serverType);
  if (!usable.ok()) return reportFor(serverType, usable);
  auto listeners = controlListeners(bind_ip, ctrl_tcp_port, ctrl_uds_path);
  if (data_port != 0)
    listeners.push_back({tcpAddress(bind_ip, data_port), connTypeName(serverType)});
  return report(impl.listeners().open(listeners));
}

status_t Communicator::initServer(const std::string& ip, uint16_t* port) {
  HMC_IMPL();
  if (!port) return report(Status(Code::invalidArgument, "initServer: port is null"));
  auto opened = impl.listeners().openAnyPort(ip);
  if (opened.ok()) *port = *opened;
  return report(opened.status());
}

status_t Communicator::closeServer() {
  HMC_IMPL();
  impl.listeners().closeAll();
  return status_t::SUCCESS;
}

status_t Communicator::connectTo(CtrlId peer_id, CtrlId self_id, const std::string& peer_ip,
                                 uint16_t data_port, const CtrlLink& ctrl_link, ConnType connType,
                                 Timeout timeout) {
  HMC_IMPL();
  return reportFor(connType, impl.connect(peer_id, self_id, {peer_ip, data_port, connType},
                                          ctrl_link, orUsual(timeout, impl.settings().connect)));
}

status_t Communicator::disConnect(const std::string& ip, uint16_t port, ConnType connType) {
  HMC_IMPL();
  impl.connections().close({ip, port, connType});
  return status_t::SUCCESS;
}

status_t Communicator::checkConn(const std::string& ip, uint16_t port, ConnType connType) {
  HMC_IMPL();
  return reportFor(connType, impl.connections().check({ip, port, connType}));
}

status_t Communicator::initServer(const std::string& ip, uint16_t port, ConnType serverType) {
  return initServer(ip, port, 0, "", serverType);
}

status_t Communicator::connectTo(const std::string& ip, uint16_t port, ConnType connType,
                                 Timeout timeout) {
  HMC_IMPL();
  return reportFor(connType, impl.connectLegacy({ip, port, connType},
                                                orUsual(timeout, impl.settings().connect)));
}

status_t Communicator::writeTo(const std::string& ip, size_t ptr_bias, size_t size,
                               ConnType connType) {
  HMC_IMPL();
  return reportFor(connType, impl.runLegacy(OpKind::put, ip, ptr_bias, size, connType));
}

status_t Communicator::readFrom(const std::string& ip, size_t ptr_bias, size_t size,
                                ConnType connType) {
  HMC_IMPL();
  return reportFor(connType, impl.runLegacy(OpKind::get, ip, ptr_bias, size, connType));
}

status_t Communicator::sendDataTo(const std::string& ip, void* send_buf, size_t buf_size,
                                  MemoryType buf_type, ConnType connType) {
  HMC_IMPL();
  return reportFor(connType,
                   impl.sendData(impl.findLegacy(ip, connType), send_buf, buf_size, buf_type));
}

status_t Communicator::recvDataFrom(const std::string& ip, void* recv_buf, size_t buf_size,
                                    MemoryType buf_type, size_t* flag, ConnType connType) {
  HMC_IMPL();
  return reportFor(connType, impl.receiveData(impl.findLegacy(ip, connType), recv_buf, buf_size,
                                              buf_type, flag));
}

status_t Communicator::disConnect(const std::string& ip, ConnType connType) {
  HMC_IMPL();
  impl.connections().close(ip, connType);
  return status_t::SUCCESS;
}

status_t Communicator::checkConn(const std::string& ip, ConnType connType) {
  HMC_IMPL();
  return reportFor(connType, impl.connections().check(ip, connType));
}

std::string Communicator::explain(const std::string& ip, uint16_t port) {
  return impl_ ? impl_->explain({ip, port, ConnType::AUTO}) : whyNot_.message();
}

std::string Communicator::path(const std::string& ip, uint16_t port, ConnType connType) {
  if (!impl_) return whyNot_.message();
  auto connection = impl_->connections().find({ip, port, connType});
  return connection.ok() ? (*connection)->buffer->path() : connection.status().message();
}

}  // namespace hmc
