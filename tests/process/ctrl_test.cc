#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "hmc/ctrl_socket_manager.h"
#include "pair.h"

namespace hmc::test {
namespace {

struct Greeting {
  int number;
  double fraction;
  char word[16];
};

TEST(CtrlByAddress, talksToItselfInOneProcess) {
  CtrlSocketManager& ctrl = CtrlSocketManager::instance();
  uint16_t port = freePort();
  ASSERT_TRUE(ctrl.startServer("0.0.0.0", port)) << lastError();
  EXPECT_TRUE(ctrl.isServer());
  EXPECT_EQ(ctrl.port(), port);
  ASSERT_GT(ctrl.getCtrlSockFd(kHere, port), 0) << lastError();
  ASSERT_TRUE(ctrl.sendCtrlInt(kHere, 42)) << lastError();
  int value = 0;
  ASSERT_TRUE(ctrl.recvCtrlInt(kHere, value)) << lastError();
  EXPECT_EQ(value, 42);
  ASSERT_TRUE(ctrl.sendCtrlStruct(kHere, Greeting{7, 0.5, "hello"}));
  ASSERT_TRUE(ctrl.sendCtrlInt(kHere, 43));
  Greeting greeting{};
  // The other kind first: each kind has its queue.
  ASSERT_EQ(status_t(ctrl.recvCtrlInt(kHere, &value)), status_t::SUCCESS);
  ASSERT_TRUE(ctrl.recvCtrlStruct(kHere, greeting)) << lastError();
  EXPECT_EQ(value, 43);
  EXPECT_EQ(greeting.number, 7);
  EXPECT_STREQ(greeting.word, "hello");
  ctrl.closeConnection(kHere);
  ctrl.closeConnection(kHere);
  EXPECT_FALSE(ctrl.sendCtrlInt(kHere, 1));
  EXPECT_FALSE(lastError().empty());
  ctrl.stopServer();
  ctrl.closeAll();
  EXPECT_FALSE(ctrl.isServer());
}

TEST(CtrlByAddress, dialsAgainAfterAClose) {
  CtrlSocketManager server, client;
  uint16_t port = freePort();
  ASSERT_TRUE(server.startServer(kHere, port)) << lastError();
  for (int round = 1; round <= 3; ++round) {
    int first = client.getCtrlSockFd(kHere, port);
    ASSERT_GT(first, 0) << lastError();
    EXPECT_EQ(client.getCtrlSockFd(kHere, port), first) << "the connection that is there";
    ASSERT_TRUE(client.sendCtrlInt(kHere, round));
    int value = 0;
    ASSERT_TRUE(server.recvCtrlInt(kHere, value)) << lastError();
    EXPECT_EQ(value, round);
    client.closeConnection(kHere);
  }
}

TEST(CtrlByRank, bytesAtANullPointerAreAnError) {
  CtrlSocketManager server, client;
  const uint16_t port = freePort();
  ASSERT_TRUE(server.start(kHere, port)) << lastError();
  ASSERT_TRUE(client.connectTcp(0, kHere, port, 1)) << lastError();
  EXPECT_FALSE(client.send(0, CTRL_STRUCT, nullptr, 10));
  EXPECT_THAT(lastError(), testing::HasSubstr("10 bytes at a null pointer"));
}

TEST(CtrlByAddress, nobodyThereIsMinusOne) {
  Variable wait("HMC_CONNECT_TIMEOUT_MS", "200");
  CtrlSocketManager ctrl;
  uint16_t port = freePort();
  EXPECT_EQ(ctrl.getCtrlSockFd(kHere, port), -1);
  EXPECT_THAT(lastError(), testing::HasSubstr(std::to_string(port)));
}

void exchange(CtrlSocketManager& client, CtrlSocketManager& server) {
  ASSERT_TRUE(client.sendU64(0, ~uint64_t{0})) << lastError();
  ASSERT_TRUE(client.sendInt(0, -5));
  ASSERT_TRUE(client.sendStruct(0, Greeting{9, 2.5, "rank"}));
  uint64_t big = 0;
  int small = 0;
  Greeting greeting{};
  ASSERT_TRUE(server.recvStruct(1, greeting)) << lastError();
  ASSERT_TRUE(server.recvInt(1, small)) << lastError();
  ASSERT_TRUE(server.recvU64(1, big)) << lastError();
  EXPECT_EQ(big, ~uint64_t{0});
  EXPECT_EQ(small, -5);
  EXPECT_STREQ(greeting.word, "rank");
  std::string text(100000, 'x');
  ASSERT_TRUE(server.send(1, CTRL_STRUCT, text.data(), text.size(), 77)) << lastError();
  CtrlMsgHeader header{};
  std::vector<uint8_t> payload;
  ASSERT_TRUE(client.recv(0, header, payload)) << lastError();
  EXPECT_EQ(header.type, CTRL_STRUCT);
  EXPECT_EQ(header.flags, 77);
  EXPECT_EQ(header.length, text.size());
  EXPECT_EQ(std::string(payload.begin(), payload.end()), text);
}

TEST(CtrlByRank, carriesEveryKindOverTcp) {
  CtrlSocketManager server, client;
  uint16_t port = freePort();
  ASSERT_TRUE(server.start(kHere, port)) << lastError();
  ASSERT_TRUE(client.connectTcp(0, kHere, port, 1)) << lastError();
  exchange(client, server);
}

TEST(CtrlByRank, carriesEveryKindOverAUnixSocket) {
  CtrlSocketManager server, client;
  std::string folder = "/tmp/hmc_ctrl_" + std::to_string(getpid());
  std::string path = folder + ".sock";
  ASSERT_TRUE(server.start("", 0, path)) << lastError();
  ASSERT_TRUE(client.connectUds(0, path, 1)) << lastError();
  exchange(client, server);
  EXPECT_EQ(CtrlSocketManager::udsPathFor("/run/x", 3), "/run/x/hmc_ctrl_rank_3.sock");
}

bool usesSharedMemory() {
  std::ifstream maps("/proc/self/maps");
  std::string all((std::istreambuf_iterator<char>(maps)), std::istreambuf_iterator<char>());
  return all.find("hmc-ring") != std::string::npos;
}

TEST(CtrlByRank, usesNoSharedMemoryWhereIpcWasNotAskedFor) {
  for (const char* transports : {"tcp", "ipc,tcp"}) {
    Variable only("HMC_TRANSPORTS", transports);
    CtrlSocketManager server, client;
    uint16_t port = freePort();
    ASSERT_TRUE(server.start(kHere, port)) << lastError();
    ASSERT_TRUE(client.connectTcp(0, kHere, port, 1)) << lastError();
    EXPECT_EQ(usesSharedMemory(), std::string(transports) != "tcp");
    exchange(client, server);
  }
}

TEST(CtrlByRank, recvTakesWhatCameFirstWhateverItIs) {
  CtrlSocketManager server, client;
  uint16_t port = freePort();
  ASSERT_TRUE(server.start(kHere, port)) << lastError();
  ASSERT_TRUE(client.connectTcp(0, kHere, port, 1)) << lastError();
  for (int round = 0; round < 50; ++round) {
    ASSERT_TRUE(client.sendStruct(0, Greeting{round, 0, "first"}));
    ASSERT_TRUE(client.sendU64(0, 2));
    ASSERT_TRUE(client.sendInt(0, 3));
    for (size_t expected : {sizeof(Greeting), sizeof(uint64_t), sizeof(int)}) {
      CtrlMsgHeader header{};
      std::vector<uint8_t> payload;
      ASSERT_TRUE(server.recv(1, header, payload)) << lastError();
      ASSERT_EQ(payload.size(), expected);
    }
  }
}

TEST(CtrlByRank, receivingWaitsForAPeerThatIsNotThereYet) {
  CtrlSocketManager server;
  uint16_t port = freePort();
  ASSERT_TRUE(server.start(kHere, port)) << lastError();
  uint64_t value = 0;
  bool received = false;
  std::thread early([&] { received = server.recvU64(4, value); });
  CtrlSocketManager client;
  ASSERT_TRUE(client.connectTcp(0, kHere, port, 4)) << lastError();
  ASSERT_TRUE(client.sendU64(0, 12));
  early.join();
  EXPECT_TRUE(received);
  EXPECT_EQ(value, 12U);
}

TEST(CtrlByRank, sizesThatDoNotFitAreErrorsNotGarbage) {
  CtrlSocketManager server, client;
  uint16_t port = freePort();
  ASSERT_TRUE(server.start(kHere, port)) << lastError();
  ASSERT_TRUE(client.connectTcp(0, kHere, port, 1)) << lastError();
  EXPECT_FALSE(client.send(0, CTRL_INT, "abc", 3));
  ASSERT_TRUE(client.sendStruct(0, uint16_t{5}));
  Greeting greeting{};
  EXPECT_EQ(status_t(server.recvStruct(1, greeting)), status_t::ERROR);
  EXPECT_THAT(lastError(), testing::HasSubstr("2 bytes"));
}

TEST(CtrlAfterFork, theChildIsRefusedAndLeavesTheParentAlone) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer ends a forked child that makes threads";
#endif
  CtrlSocketManager server, client;
  const uint16_t port = freePort();
  ASSERT_EQ(server.start("127.0.0.1", port, ""), status_t::SUCCESS);
  ASSERT_EQ(client.connectTcp(0, "127.0.0.1", port, 1), status_t::SUCCESS);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // ends a child that hangs
    int value = 0;
    if (client.sendInt(0, 666) == status_t::SUCCESS) _exit(1);
    if (server.recvInt(1, value) == status_t::SUCCESS) _exit(2);
    client.stop();
    client.close(0);
    client.closeConnection("127.0.0.1");
    if (server.isServer()) _exit(3);
    client.closeAll();
    server.~CtrlSocketManager();
    // Its own works.
    CtrlSocketManager own;
    if (own.start("127.0.0.1", freePort(), "") != status_t::SUCCESS) _exit(4);
    if (client.connectTcp(0, "127.0.0.1", own.port(), 1) != status_t::SUCCESS) _exit(5);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(client.sendInt(0, 5), status_t::SUCCESS);
  int value = 0;
  EXPECT_EQ(server.recvInt(1, value), status_t::SUCCESS);
  EXPECT_EQ(value, 5);
}

}  // namespace
}  // namespace hmc::test
