// Runs with HMC_TRANSPORTS=tcp: a link that can be cut while its peer stays connected.

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <set>

#include "hmc/communicator.h"

namespace hmc {
namespace {

constexpr size_t kSize = size_t{64} << 20;
constexpr const char* kHere = "127.0.0.1";

uint16_t portOf(const sockaddr_in& address) {
  return ntohs(address.sin_port);
}

uint16_t freePort() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  close(fd);
  return portOf(address);
}

// Shuts down every connection of this process that does not belong to one of the ports.
int cutConnectionsExcept(const std::set<uint16_t>& kept) {
  int cut = 0;
  for (int fd = 3; fd < 1024; ++fd) {
    sockaddr_in here{}, there{};
    socklen_t size = sizeof(here);
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&here), &size) != 0) continue;
    size = sizeof(there);
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&there), &size) != 0) continue;
    if (here.sin_family != AF_INET || kept.count(portOf(here)) || kept.count(portOf(there)))
      continue;
    cut += shutdown(fd, SHUT_RDWR) == 0;
  }
  return cut;
}

class CommunicatorWait : public testing::Test {
 protected:
  CommunicatorWait()
      : serverBuffer(std::make_shared<ConnBuffer>(0, kSize, MemoryType::CPU)),
        clientBuffer(std::make_shared<ConnBuffer>(0, kSize, MemoryType::CPU)),
        server(serverBuffer),
        client(clientBuffer),
        control(freePort()),
        data(freePort()) {}

  void SetUp() override {
    ASSERT_EQ(server.initServer(kHere, data, control, "", ConnType::TCP), status_t::SUCCESS)
        << lastError();
    Communicator::CtrlLink link;
    link.ip = kHere;
    link.port = control;
    ASSERT_EQ(client.connectTo(1, 0, kHere, data, link, ConnType::TCP), status_t::SUCCESS)
        << lastError();
  }

  std::shared_ptr<ConnBuffer> serverBuffer, clientBuffer;
  Communicator server, client;
  const uint16_t control, data;
};

TEST_F(CommunicatorWait, aTransferThatLostItsLinkLeavesTheNextOneAFreshLink) {
  std::memset(clientBuffer->ptr, 'x', kSize);
  uint64_t id = 0;
  ASSERT_EQ(client.putNB(kHere, data, 0, 0, kSize, &id, ConnType::TCP), status_t::SUCCESS);
  ASSERT_NE(id, 0u);
  ASSERT_GT(cutConnectionsExcept({control, data}), 0);
  EXPECT_NE(client.wait(id), status_t::SUCCESS);
  EXPECT_EQ(client.put(kHere, data, 0, 0, 4096, ConnType::TCP), status_t::SUCCESS) << lastError();
  EXPECT_EQ(std::memcmp(serverBuffer->ptr, clientBuffer->ptr, 4096), 0);
}

TEST_F(CommunicatorWait, aTransferIsWaitedForOnce) {
  uint64_t id = 0;
  ASSERT_EQ(client.putNB(kHere, data, 0, 0, kSize, &id, ConnType::TCP), status_t::SUCCESS);
  ASSERT_NE(id, 0u);
  EXPECT_EQ(client.wait(id), status_t::SUCCESS) << lastError();
  EXPECT_NE(client.wait(id), status_t::SUCCESS);
}

}  // namespace
}  // namespace hmc
