#include <gtest/gtest.h>

#include "peer.h"

namespace hmc::test {
namespace {

constexpr size_t kStoppedSize = size_t{256} << 10;
// Long enough that no test ends by it, short enough to wait for.
const Process::Environment kPatient{{"HMC_LEASE_MS", "60000"}};
const Process::Environment kShortLease{{"HMC_LEASE_MS", "2000"}, {"HMC_TIMEOUT_MS", "1000"}};

bool serveAndConnect(Peer& server, Peer& client, const char* type) {
  return server.serve(kStoppedSize).ok && client.allocate(kStoppedSize).ok &&
         client.connectTo(server, type).ok;
}

TEST(Stop, ofAPeerDoesNotHinderTransfersThroughMappedMemory) {
  Peer server(kPatient), client(kPatient);
  ASSERT_TRUE(serveAndConnect(server, client, "IPC"));
  ASSERT_TRUE(client.fill(0, kStoppedSize, 1).ok);
  server.stop();
  Reply put = client.transfer("put", server, 0, 0, kStoppedSize, "IPC");
  EXPECT_TRUE(put.ok) << put;
  ASSERT_TRUE(client.fill(0, kStoppedSize, 2).ok);
  Reply get = client.transfer("get", server, 0, 0, kStoppedSize, "IPC");
  EXPECT_TRUE(get.ok) << get;
  EXPECT_TRUE(client.check(0, kStoppedSize, 1).ok);
  server.resume();
  EXPECT_TRUE(server.check(0, kStoppedSize, 1).ok);
}

TEST(Stop, shorterThanTheLeaseOnlyDelays) {
  Peer server(kPatient), client(kPatient);
  ASSERT_TRUE(serveAndConnect(server, client, "TCP"));
  ASSERT_TRUE(client.fill(0, kStoppedSize, 3).ok);
  server.stop();
  client.say("put " + server.address() + " 0 0 " + std::to_string(kStoppedSize) + " TCP");
  // It waits: a second shows that as well as an hour would.
  EXPECT_EQ(client.answer(std::chrono::seconds(1)).code, "SILENT");
  server.resume();
  Reply put = client.answer();
  EXPECT_TRUE(put.ok) << put;
  EXPECT_TRUE(server.check(0, kStoppedSize, 3).ok);
  EXPECT_TRUE(client.ask("tag 0 1").ok);
  EXPECT_EQ(server.ask("recvtag 1").text, "1");
}

// Stopped for longer than the lease, with a put on its way: the bytes lie in the server's socket
// when it wakes up, and must not be applied by then. fence_test.cc does it to every transport.
TEST(Stop, longerThanTheLeaseLosesTheLinkAndAppliesNothingStale) {
  Peer server(kShortLease), client(kShortLease);
  ASSERT_TRUE(serveAndConnect(server, client, "TCP"));
  ASSERT_TRUE(client.fill(0, kStoppedSize, 4).ok);
  Reply first;
  ASSERT_TRUE(eventually([&] {
    first = client.transfer("put", server, 0, 0, kStoppedSize, "TCP");
    return first.ok;
  })) << first;

  server.stop();
  ASSERT_TRUE(client.fill(0, kStoppedSize, 5).ok);
  Reply put = client.transfer("put", server, 0, 0, kStoppedSize, "TCP");
  EXPECT_FALSE(put.ok);
  EXPECT_TRUE(put.code == "TIMEOUT" || put.code == "ERROR") << put;
  EXPECT_FALSE(put.text.empty());
  Reply lost;
  EXPECT_TRUE(eventually([&] {
    lost = client.connected(server, "TCP");
    return !lost.ok;
  }));
  EXPECT_FALSE(lost.text.empty());

  server.resume();
  // By then the server has read everything that came before the client's goodbye.
  Reply connected = client.connectTo(server, "TCP");
  ASSERT_TRUE(connected.ok) << connected;
  ASSERT_TRUE(client.ask("tag 0 2").ok);
  EXPECT_EQ(server.ask("recvtag 1").text, "2");
  Reply canary = server.check(0, kStoppedSize, 4);
  EXPECT_TRUE(canary.ok) << canary;
  Reply again;
  // A second may be short for a busy machine, so it may try again.
  EXPECT_TRUE(eventually([&] {
    again = client.transfer("put", server, 0, 0, kStoppedSize, "TCP");
    return again.ok;
  })) << again;
  EXPECT_TRUE(server.check(0, kStoppedSize, 5).ok);
}

TEST(Stop, ofAClientForLongerThanTheLeaseLetsTheServerServeOthers) {
  Peer server(kShortLease), client(kShortLease), other(kShortLease);
  ASSERT_TRUE(server.serve(kStoppedSize).ok);
  for (Peer* one : {&client, &other}) ASSERT_TRUE(one->allocate(kStoppedSize).ok);
  ASSERT_TRUE(client.connectTo(server, "TCP", 1).ok);
  client.stop();
  ASSERT_TRUE(other.connectTo(server, "TCP", 2).ok);
  ASSERT_TRUE(other.fill(0, 4096, 6).ok);
  EXPECT_TRUE(other.transfer("put", server, 0, 0, 4096, "TCP").ok);
  // The server gives the silent one up by itself.
  Reply gone;
  EXPECT_TRUE(eventually([&] {
    gone = server.ask("tag 1 1");
    return !gone.ok;
  }));
  EXPECT_NE(gone.text.find("rank 1"), std::string::npos) << gone;
  client.resume();
  EXPECT_TRUE(eventually([&] { return !client.connected(server, "TCP").ok; }));
  Reply connected = client.connectTo(server, "TCP", 1);
  ASSERT_TRUE(connected.ok) << connected;
  ASSERT_TRUE(client.ask("tag 0 3").ok);
  EXPECT_EQ(server.ask("recvtag 1").text, "3");
  EXPECT_TRUE(other.transfer("put", server, 0, 0, 4096, "TCP").ok);
}

}  // namespace
}  // namespace hmc::test
