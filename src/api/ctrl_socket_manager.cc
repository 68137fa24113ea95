#include "hmc/ctrl_socket_manager.h"

#include "api/ctrl_impl.h"
#include "api/status_map.h"

namespace hmc {

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
  impl_->stop();
}
bool CtrlSocketManager::isServer() const {
  return impl_->isServer();
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
  auto kind = impl_->kindOf(type, len);
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
  impl_->close(peer_id);
}
void CtrlSocketManager::closeAll() {
  impl_->closeAll();
}

CtrlResult CtrlSocketManager::startServer(const std::string& bind_ip, uint16_t port) {
  return report(impl_->start(bind_ip, port, ""));
}

void CtrlSocketManager::stopServer() {
  impl_->stop();
}
uint16_t CtrlSocketManager::port() const {
  return impl_->port();
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
  impl_->close(ip);
}

}  // namespace hmc
