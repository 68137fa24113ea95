#include <gtest/gtest.h>

#include "peer.h"

namespace hmc::test {
namespace {

constexpr size_t kKilledSize = size_t{16} << 20;

// A server, a witness that must not notice, and the two transports.
class Kill : public testing::TestWithParam<const char*> {
 protected:
  const std::string type = GetParam();

  void SetUp() override {
    ASSERT_TRUE(server.serve(kKilledSize).ok);
    ASSERT_TRUE(witness.serve(kKilledSize).ok);
    ASSERT_TRUE(client.allocate(kKilledSize).ok);
    ASSERT_TRUE(client.connectTo(server, type).ok);
    Reply connected = client.ask("connect 7 1 " + witness.address() + " " +
                                 std::to_string(witness.controlPort()) + " " + type);
    ASSERT_TRUE(connected.ok) << connected;
  }

  void expectWitnessServed(int seed) {
    EXPECT_TRUE(client.fill(64, 5000, seed).ok);
    Reply put = client.transfer("put", witness, 64, 128, 5000, type);
    EXPECT_TRUE(put.ok) << put;
    EXPECT_TRUE(witness.check(128, 5000, seed).ok);
  }

  // Brings the server back as a new process under the same rank and ports.
  void expectReconnectWorks(int seed) {
    Peer again;
    Reply served = again.serveAs(server, kKilledSize);
    ASSERT_TRUE(served.ok) << served;
    Reply connected = client.connectTo(server, type);
    ASSERT_TRUE(connected.ok) << connected;
    EXPECT_TRUE(client.fill(0, 70000, seed).ok);
    Reply put = client.transfer("put", server, 0, 1000, 70000, type);
    EXPECT_TRUE(put.ok) << put;
    EXPECT_TRUE(again.check(1000, 70000, seed).ok);
    EXPECT_TRUE(client.ask("tag 0 5").ok);
    EXPECT_EQ(again.ask("recvtag 1").text, "5");
  }

  void expectLoopEnds(const std::string& what) {
    ASSERT_TRUE(client
                    .ask("loop " + what + " " + server.address() + " " +
                         std::to_string(kKilledSize) + " " + type)
                    .ok);
    ASSERT_TRUE(eventually([&] { return std::stoull(client.ask("rounds").text) >= 3; }));
    server.kill();
    Reply end = client.ask("join");
    EXPECT_FALSE(end.ok);
    EXPECT_TRUE(end.code == "ERROR" || end.code == "NOT_FOUND") << end;
    EXPECT_NE(end.text.find("127.0.0.1"), std::string::npos) << end;
    expectWitnessServed(4);
    expectReconnectWorks(5);
  }

  Peer server, witness, client;
};

TEST_P(Kill, beforeATransferIsAnErrorAndOthersGoOn) {
  server.kill();
  Reply put;
  // The kernel tells the client sooner or later; mapped memory can still be written until then.
  EXPECT_TRUE(eventually([&] {
    put = client.transfer("put", server, 0, 0, 4096, type);
    return !put.ok;
  }));
  EXPECT_FALSE(put.text.empty());
  EXPECT_NE(put.code, "GONE");
  expectWitnessServed(1);
  expectReconnectWorks(2);
  expectWitnessServed(3);
}

TEST_P(Kill, duringPutsEndsThemWithTheReason) {
  expectLoopEnds("put");
}

TEST_P(Kill, duringGetsEndsThemWithTheReason) {
  expectLoopEnds("get");
}

TEST_P(Kill, duringPipelinesEndsThemWithTheReason) {
  expectLoopEnds("putpipeline");
}

TEST_P(Kill, duringPipelinedGetsEndsThemWithTheReason) {
  expectLoopEnds("getpipeline");
}

TEST_P(Kill, afterATransferLeavesTheBytesOfTheSurvivorAlone) {
  ASSERT_TRUE(server.fill(0, 4096, 6).ok);
  ASSERT_TRUE(client.transfer("get", server, 0, 0, 4096, type).ok);
  server.kill();
  EXPECT_TRUE(eventually([&] { return !client.connected(server, type).ok; }));
  Reply lost = client.ask("tag 0 1");
  EXPECT_FALSE(lost.ok);
  EXPECT_NE(lost.text.find("rank 0"), std::string::npos) << lost;
  EXPECT_TRUE(client.check(0, 4096, 6).ok);
  expectWitnessServed(7);
}

TEST_P(Kill, ofAClientIsNothingToTheServer) {
  ASSERT_TRUE(
      client.ask("loop put " + server.address() + " " + std::to_string(kKilledSize) + " " + type)
          .ok);
  ASSERT_TRUE(eventually([&] { return std::stoull(client.ask("rounds").text) >= 2; }));
  client.kill();
  Peer other;
  ASSERT_TRUE(other.allocate(kKilledSize).ok);
  Reply connected = other.connectTo(server, type);
  ASSERT_TRUE(connected.ok) << connected;
  ASSERT_TRUE(other.ask("tag 0 9").ok);
  EXPECT_EQ(server.ask("recvtag 1").text, "9") << "the new process under the old rank";
  ASSERT_TRUE(other.fill(0, 4096, 8).ok);
  EXPECT_TRUE(other.transfer("put", server, 0, 0, 4096, type).ok);
  EXPECT_TRUE(server.check(0, 4096, 8).ok);
}

TEST_P(Kill, ofAClientThatTheServerHeardLeavesItsRankToTheNext) {
  ASSERT_TRUE(client.ask("tag 0 4").ok);
  ASSERT_EQ(server.ask("recvtag 1").text, "4");
  client.kill();
  Peer other;
  ASSERT_TRUE(other.allocate(kKilledSize).ok);
  ASSERT_TRUE(other.connectTo(server, type).ok);
  ASSERT_TRUE(other.ask("tag 0 9").ok);
  EXPECT_EQ(server.ask("recvtag 1").text, "9");
}

INSTANTIATE_TEST_SUITE_P(Transport, Kill, testing::Values("IPC", "TCP"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace hmc::test
