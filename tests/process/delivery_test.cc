#include <gtest/gtest.h>

#include "peer.h"

namespace hmc::test {
namespace {

class Delivery : public testing::TestWithParam<const char*> {};

TEST_P(Delivery, survivesTheEndOfTheSender) {
  const std::string type = GetParam();
  Peer server;
  ASSERT_TRUE(server.serve(1 << 20).ok);
  {
    Peer client;
    ASSERT_TRUE(client.allocate(1 << 20).ok);
    ASSERT_TRUE(client.connectTo(server, type).ok);
    ASSERT_TRUE(client.fill(0, 1 << 20, 1).ok);
    ASSERT_TRUE(client.transfer("put", server, 0, 0, 1 << 20, type).ok);
    ASSERT_TRUE(client.ask("tag 0 21").ok);
    ASSERT_TRUE(client.ask("tag 0 22").ok);
    EXPECT_EQ(client.finish(), 0);
  }
  EXPECT_TRUE(server.check(0, 1 << 20, 1).ok);
  EXPECT_EQ(server.ask("recvtag 1").text, "21");
  EXPECT_EQ(server.ask("recvtag 1").text, "22");
}

TEST_P(Delivery, ofAPutIsCompleteWhenTheSenderIsKilledRightAfter) {
  const std::string type = GetParam();
  Peer server, client;
  ASSERT_TRUE(server.serve(1 << 20).ok);
  ASSERT_TRUE(client.allocate(1 << 20).ok);
  ASSERT_TRUE(client.connectTo(server, type).ok);
  ASSERT_TRUE(client.fill(0, 1 << 20, 2).ok);
  ASSERT_TRUE(client.transfer("put", server, 0, 0, 1 << 20, type).ok);
  client.kill();
  EXPECT_TRUE(server.check(0, 1 << 20, 2).ok);
}

TEST_P(Delivery, keepsMessagesOfAnOldProcessApartFromTheNewOne) {
  const std::string type = GetParam();
  Peer server;
  ASSERT_TRUE(server.serve(4096).ok);
  for (int life = 1; life <= 3; ++life) {
    Peer client;
    ASSERT_TRUE(client.allocate(4096).ok);
    Reply connected = client.connectTo(server, type);
    ASSERT_TRUE(connected.ok) << connected;
    ASSERT_TRUE(client.ask("tag 0 " + std::to_string(life)).ok);
    EXPECT_EQ(client.finish(), 0);
  }
  for (int life = 1; life <= 3; ++life) {
    EXPECT_EQ(server.ask("recvtag 1").text, std::to_string(life));
  }
}

TEST_P(Delivery, closeServerLeavesTheProcessAlive) {
  const std::string type = GetParam();
  Peer server, client;
  ASSERT_TRUE(server.serve(4096, type).ok);
  ASSERT_TRUE(client.allocate(4096).ok);
  ASSERT_TRUE(client.connectTo(server, type).ok);
  EXPECT_TRUE(server.ask("closeserver").ok);
  EXPECT_TRUE(server.ask("closeserver").ok);
  EXPECT_TRUE(eventually([&] { return !client.connected(server, type).ok; }));
  Reply put = client.transfer("put", server, 0, 0, 8, type);
  EXPECT_FALSE(put.ok);
  EXPECT_FALSE(put.text.empty());
  EXPECT_EQ(server.finish(), 0);
}

INSTANTIATE_TEST_SUITE_P(Transport, Delivery, testing::Values("IPC", "TCP", "RDMA"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace hmc::test
