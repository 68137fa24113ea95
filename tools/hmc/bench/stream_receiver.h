#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "hmc.h"
#include "hmc/result.h"

// Both ends of a measurement of sendDataTo() and recvDataFrom().
namespace hmc::bench {

inline constexpr size_t kStreamBuffer = size_t{64} << 20;

// Memory of one device, as the documented classes allocate it.
class DeviceBytes {
 public:
  static Result<std::unique_ptr<DeviceBytes>> allocate(size_t bytes, Device device);
  ~DeviceBytes() { memory_.freeBuffer(data_); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;

  void* data() const { return data_; }
  size_t size() const { return size_; }
  MemoryType type() { return memory_.getMemoryType(); }

 private:
  DeviceBytes(size_t bytes, Device device);
  const size_t size_;
  Memory memory_;
  void* data_ = nullptr;
};

// The documented classes take no port 0: tries some, and answers the one that it listens on.
Result<uint16_t> listenSomewhere(Communicator& communicator, const std::string& host);

// The end that receives, through host memory of its own.
class StreamReceiver {
 public:
  static Result<std::unique_ptr<StreamReceiver>> open(const std::string& host, size_t bytes,
                                                      Device device);
  uint16_t port() const { return port_; }
  // Receives from its one client until that sends 0 bytes.
  Status run();

 private:
  StreamReceiver(std::string host, std::unique_ptr<DeviceBytes> into, Device device);
  const std::string host_;
  const std::unique_ptr<DeviceBytes> into_;
  Communicator communicator_;
  uint16_t port_ = 0;
};

}  // namespace hmc::bench
