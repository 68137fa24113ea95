#include "netns.h"

#include <gmock/gmock.h>

#include "peer.h"

namespace hmc::test {
namespace {

using testing::HasSubstr;

constexpr size_t kNetworkSize = size_t{8} << 20;
const Process::Environment kNetworkTimes{
    {"HMC_LEASE_MS", "3000"}, {"HMC_TIMEOUT_MS", "3000"}, {"HMC_CONNECT_TIMEOUT_MS", "3000"}};

class Network : public testing::Test {
 protected:
  void SetUp() override {
    if (!cable.whyNot().empty()) GTEST_SKIP() << cable.whyNot();
    server = std::make_unique<Peer>(cable.left(), kNetworkTimes);
    client = std::make_unique<Peer>(cable.right(), kNetworkTimes);
    Reply served = server->serve(kNetworkSize, "AUTO", Cable::leftAddress());
    ASSERT_TRUE(served.ok) << served;
    ASSERT_TRUE(client->allocate(kNetworkSize).ok);
  }

  Cable cable;  // outlives the processes in it
  std::unique_ptr<Peer> server, client;
};

TEST_F(Network, cutEndsATransferAndMendedItWorksAgain) {
  Reply connected = client->connectTo(*server, "TCP");
  ASSERT_TRUE(connected.ok) << connected;
  ASSERT_TRUE(
      client->ask("loop put " + server->address() + " " + std::to_string(kNetworkSize) + " TCP")
          .ok);
  ASSERT_TRUE(eventually([&] { return std::stoull(client->ask("rounds").text) >= 3; }));
  ASSERT_TRUE(cable.cut());
  Reply end = client->ask("join");
  EXPECT_FALSE(end.ok);
  EXPECT_TRUE(end.code == "TIMEOUT" || end.code == "ERROR") << end;
  EXPECT_THAT(end.text, HasSubstr(Cable::leftAddress()));
  // Both sides give the other up.
  EXPECT_TRUE(eventually([&] { return !client->connected(*server, "TCP").ok; }));
  Reply gone;
  EXPECT_TRUE(eventually([&] {
    gone = server->ask("tag 1 1");
    return !gone.ok;
  }));
  EXPECT_FALSE(gone.text.empty());
  // Nobody can be reached over a cut cable, and that takes bounded time too.
  Reply unreachable = client->connectTo(*server, "TCP");
  EXPECT_FALSE(unreachable.ok);
  EXPECT_THAT(unreachable.text, HasSubstr(Cable::leftAddress()));

  ASSERT_TRUE(cable.mend());
  Reply again;
  EXPECT_TRUE(eventually([&] {
    again = client->connectTo(*server, "TCP");
    return again.ok;
  })) << again;
  ASSERT_TRUE(client->fill(0, kNetworkSize, 1).ok);
  Reply put = client->transfer("put", *server, 0, 0, kNetworkSize, "TCP");
  EXPECT_TRUE(put.ok) << put;
  EXPECT_TRUE(server->check(0, kNetworkSize, 1).ok);
  EXPECT_TRUE(client->ask("tag 0 2").ok);
  EXPECT_EQ(server->ask("recvtag 1").text, "2");
}

// The target would wait for a minute by itself. It is stopped with a put in its socket, and nothing
// that the origin does reaches it any more: their common lease is the only fence.
TEST_F(Network, aTargetThatIsCutOffAppliesNothingAfterTheOriginsShorterLease) {
  server = std::make_unique<Peer>(
      cable.left(), Process::Environment{{"HMC_LEASE_MS", "60000"}, {"HMC_TIMEOUT_MS", "500"}});
  client = std::make_unique<Peer>(
      cable.right(), Process::Environment{{"HMC_LEASE_MS", "1000"}, {"HMC_TIMEOUT_MS", "500"}});
  ASSERT_TRUE(server->serve(kNetworkSize, "AUTO", Cable::leftAddress()).ok);
  ASSERT_TRUE(client->allocate(kNetworkSize).ok);
  Reply connected = client->connectTo(*server, "TCP");
  ASSERT_TRUE(connected.ok) << connected;
  ASSERT_TRUE(client->fill(0, kNetworkSize, 1).ok);
  ASSERT_TRUE(
      eventually([&] { return client->transfer("put", *server, 0, 0, kNetworkSize, "TCP").ok; }));
  ASSERT_TRUE(client->fill(0, kNetworkSize, 2).ok);
  server->stop();
  client->say("put " + server->address() + " 0 0 " + std::to_string(kNetworkSize) + " TCP");
  EXPECT_EQ(client->answer(std::chrono::milliseconds(100)).code, "SILENT");
  ASSERT_TRUE(cable.cut());
  Reply put = client->answer();
  EXPECT_FALSE(put.ok);
  server->resume();
  Reply gone;
  EXPECT_TRUE(eventually([&] {
    gone = server->ask("tag 1 1");
    return !gone.ok;
  }));
  Reply canary = server->check(0, kNetworkSize, 1);
  EXPECT_TRUE(canary.ok) << canary;
}

TEST_F(Network, namespacesAreHostsOfTheirOwnToTheIpcTransport) {
  Reply connected = client->connectTo(*server, "AUTO");
  ASSERT_TRUE(connected.ok) << connected;
  std::string explained = client->ask("explain " + server->address()).text;
  EXPECT_THAT(explained, HasSubstr("ipc: not usable"));
  EXPECT_THAT(explained, HasSubstr("tcp: used"));
  Reply refused = client->connectTo(*server, "IPC");
  EXPECT_EQ(refused.code, "UNSUPPORT") << refused;
  EXPECT_THAT(refused.text, HasSubstr("ipc"));
  ASSERT_TRUE(client->fill(0, kNetworkSize, 2).ok);
  EXPECT_TRUE(client->transfer("put", *server, 0, 0, kNetworkSize, "AUTO").ok);
  EXPECT_TRUE(server->check(0, kNetworkSize, 2).ok);
}

}  // namespace
}  // namespace hmc::test
