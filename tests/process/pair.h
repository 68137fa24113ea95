#pragma once

#include <gtest/gtest.h>
#include <hmc.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fakes/pattern.h"
#include "fakes/unseen_order.h"
#include "peer.h"

namespace hmc::test {

inline const std::string kHere = "127.0.0.1";

// A variable of the environment for as long as this lives. Set before a Communicator is made.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

// A ConnBuffer with a Communicator around it.
struct Party {
  explicit Party(size_t size, size_t channels = 1, MemoryType memory = MemoryType::CPU)
      : buffer(std::make_shared<ConnBuffer>(0, size, memory)),
        communicator(std::make_unique<Communicator>(buffer, channels)) {}

  // Listens on ports that it picks.
  status_t serve(ConnType type = ConnType::AUTO) {
    dataPort = freePort();
    controlPort = freePort();
    return communicator->initServer(kHere, dataPort, controlPort, "", type);
  }
  status_t connectTo(const Party& server, ConnType type, uint32_t peer = 0, uint32_t self = 1) {
    Communicator::CtrlLink link;
    link.ip = kHere;
    link.port = server.controlPort;
    return communicator->connectTo(peer, self, kHere, server.dataPort, link, type);
  }
  // The same by address alone, as the first generation did.
  status_t serveAlone(ConnType type) {
    dataPort = freePort();
    return communicator->initServer(kHere, dataPort, type);
  }
  status_t connectAlone(const Party& server, ConnType type) const {
    return communicator->connectTo(kHere, server.dataPort, type);
  }
  void fill(size_t offset, size_t size, int seed) {
    std::string bytes = pattern(size, seed);
    Unseen order;
    ASSERT_EQ(buffer->writeFromCpu(bytes.data(), size, offset), status_t::SUCCESS) << lastError();
  }
  std::string bytes(size_t offset, size_t size) {
    std::string copy(size, '\0');
    Unseen order;
    EXPECT_EQ(buffer->readToCpu(copy.data(), size, offset), status_t::SUCCESS) << lastError();
    return copy;
  }
  static std::string pattern(size_t size, int seed) {
    return test::pattern(size, static_cast<uint64_t>(seed));
  }

  std::shared_ptr<ConnBuffer> buffer;
  std::unique_ptr<Communicator> communicator;
  uint16_t dataPort = 0;
  uint16_t controlPort = 0;
};

// Two Communicators of this process that are connected over one type.
struct Pair {
  Pair(size_t size, ConnType connType) : server(size), client(size), type(connType) {
    EXPECT_EQ(server.serve(type), status_t::SUCCESS) << lastError();
    EXPECT_EQ(client.connectTo(server, type), status_t::SUCCESS) << lastError();
  }
  Party server, client;
  ConnType type;
  Communicator& operator*() { return *client.communicator; }
  Communicator* operator->() { return client.communicator.get(); }
  uint16_t port() const { return server.dataPort; }
};

inline std::string typeName(const testing::TestParamInfo<ConnType>& info) {
  return info.param == ConnType::IPC ? "ipc" : "tcp";
}

}  // namespace hmc::test
