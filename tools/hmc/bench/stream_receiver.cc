#include "bench/stream_receiver.h"

#include <stdexcept>

#include "bench/raw_socket.h"
#include "try.h"

namespace hmc::bench {

namespace {
// The types are the kinds, behind DEFAULT.
MemoryType typeOf(DeviceKind kind) {
  return static_cast<MemoryType>(static_cast<int>(kind) + 1);
}
}  // namespace

DeviceBytes::DeviceBytes(size_t bytes, Device device)
    : size_(bytes), memory_(device.index, typeOf(device.kind)) {}

Result<std::unique_ptr<DeviceBytes>> DeviceBytes::allocate(size_t bytes, Device device) try {
  std::unique_ptr<DeviceBytes> made(new DeviceBytes(bytes, device));
  if (made->memory_.allocateBuffer(&made->data_, bytes) != status_t::SUCCESS) return lastStatus();
  return made;
} catch (const std::runtime_error& missing) {
  return Status(Code::unsupported, missing.what());
}

Result<uint16_t> listenSomewhere(Communicator& communicator, const std::string& host) {
  for (int attempt = 0; attempt < 50; ++attempt) {
    TOOL_ASSIGN(const uint16_t port, freePort(host));
    if (communicator.initServer(host, port, ConnType::AUTO) == status_t::SUCCESS) return port;
  }
  return Status(Code::failed, "no port for a Communicator: " + lastError());
}

StreamReceiver::StreamReceiver(std::string host, std::unique_ptr<DeviceBytes> into, Device device)
    : host_(std::move(host)),
      into_(std::move(into)),
      communicator_(std::make_shared<ConnBuffer>(device.index, kStreamBuffer, MemoryType::CPU)) {}

Result<std::unique_ptr<StreamReceiver>> StreamReceiver::open(const std::string& host, size_t bytes,
                                                             Device device) {
  TOOL_ASSIGN(auto into, DeviceBytes::allocate(bytes, device));
  std::unique_ptr<StreamReceiver> made(new StreamReceiver(host, std::move(into), device));
  TOOL_ASSIGN(made->port_, listenSomewhere(made->communicator_, host));
  return made;
}

Status StreamReceiver::run() {
  for (size_t received = 1; received > 0;) {
    if (communicator_.recvDataFrom(host_, 0, into_->data(), into_->size(), into_->type(), &received,
                                   ConnType::AUTO) != status_t::SUCCESS)
      return lastStatus();
  }
  return Status();
}

}  // namespace hmc::bench
