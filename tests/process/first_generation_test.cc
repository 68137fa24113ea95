// A server that names its clients by their address, before they come and while they go.

#include <sys/wait.h>
#include <unistd.h>

#include <future>

#include "pair.h"

namespace hmc::test {
namespace {

constexpr size_t kFirstGenerationSize = 1 << 20;

status_t readWhatComes(Party& server) {
  return server.communicator->readFrom(kHere, 0, 4096, ConnType::TCP);
}

TEST(FirstGenerationServer, readsWhatAClientYetToComeWrites) {
  Party server(kFirstGenerationSize);
  ASSERT_EQ(server.serveAlone(ConnType::TCP), status_t::SUCCESS);
  auto reading = std::async(std::launch::async, [&] { return readWhatComes(server); });
  Party client(kFirstGenerationSize);
  ASSERT_EQ(client.connectAlone(server, ConnType::TCP), status_t::SUCCESS);
  client.fill(0, 4096, 6);
  ASSERT_EQ(client.communicator->writeTo(kHere, 0, 4096, ConnType::TCP), status_t::SUCCESS);
  EXPECT_EQ(reading.get(), status_t::SUCCESS) << lastError();
  EXPECT_EQ(server.bytes(0, 4096), Party::pattern(4096, 6));
}

TEST(FirstGenerationServer, readsFromAClientThatNeverWrites) {
  Party server(kFirstGenerationSize);
  ASSERT_EQ(server.serveAlone(ConnType::TCP), status_t::SUCCESS);
  auto reading = std::async(std::launch::async, [&] { return readWhatComes(server); });
  Party client(kFirstGenerationSize);
  client.fill(0, 4096, 7);
  ASSERT_EQ(client.connectAlone(server, ConnType::TCP), status_t::SUCCESS);
  EXPECT_EQ(reading.get(), status_t::SUCCESS) << lastError();
  EXPECT_EQ(server.bytes(0, 4096), Party::pattern(4096, 7));
}

TEST(FirstGenerationServer, finishesReadingWhenTheClientGoes) {
  for (int round = 0; round < 10; ++round) {
    Party server(kFirstGenerationSize);
    ASSERT_EQ(server.serveAlone(ConnType::TCP), status_t::SUCCESS);
    auto reading = std::async(std::launch::async, [&] { return readWhatComes(server); });
    // Clients that only look in, until one of them was there when the server read.
    do {
      Party client(kFirstGenerationSize);
      client.fill(0, 4096, round);
      ASSERT_EQ(client.connectAlone(server, ConnType::TCP), status_t::SUCCESS);
    } while (reading.wait_for(std::chrono::seconds(0)) != std::future_status::ready);
    EXPECT_EQ(reading.get(), status_t::SUCCESS) << lastError();
    EXPECT_EQ(server.bytes(0, 4096), Party::pattern(4096, round));
  }
}

TEST(FirstGenerationServer, doesNotWaitForEver) {
  Variable soon("HMC_TIMEOUT_MS", "50");
  Party server(kFirstGenerationSize);
  ASSERT_EQ(server.communicator->initServer(kHere, freePort(), ConnType::TCP), status_t::SUCCESS);
  EXPECT_NE(server.communicator->readFrom("10.9.8.7", 0, 8, ConnType::TCP), status_t::SUCCESS);
  EXPECT_NE(lastError().find("10.9.8.7"), std::string::npos) << lastError();
}

TEST(Communicator, copiesAtOnceWhereMemoryIsMapped) {
  Pair pair(kFirstGenerationSize, ConnType::IPC);
  pair.client.fill(0, 64, 1);
  EXPECT_FALSE(pair->tryPut(kHere, 1, 0, 0, 64, pair.type));
  ASSERT_EQ(pair->put(kHere, pair.port(), 0, 0, 64, pair.type), status_t::SUCCESS) << lastError();
  EXPECT_TRUE(pair->tryPut(kHere, pair.port(), 0, 128, 64, pair.type));
  EXPECT_EQ(pair.server.bytes(128, 64), Party::pattern(64, 1));
  EXPECT_TRUE(pair->tryGet(kHere, pair.port(), 256, 128, 64, pair.type));
  EXPECT_EQ(pair.client.bytes(256, 64), Party::pattern(64, 1));
  EXPECT_FALSE(pair->tryPut(kHere, pair.port(), 0, kFirstGenerationSize, 64, pair.type));
  EXPECT_FALSE(pair->tryGet(kHere, pair.port(), 0, ~size_t{0} - 7, 64, pair.type));
  pair->close();
  EXPECT_FALSE(pair->tryPut(kHere, pair.port(), 0, 128, 64, pair.type));
}

TEST(Communicator, leavesTheMomentToTheCallerWhereItIsTold) {
  Pair pair(kFirstGenerationSize, ConnType::TCP);
  uint64_t tag = 0;
  EXPECT_EQ(pair->ctrlRecv(0, &tag, Communicator::Timeout(10)), status_t::TIMEOUT);
  EXPECT_EQ(lastStatus().code(), Code::deadlineExceeded);
  const auto soon = Communicator::Timeout(50);
  EXPECT_NE(pair->connectTo(kHere, freePort(), pair.type, soon), status_t::SUCCESS);
}

TEST(Communicator, wakesWhoWaitsInItWhenItIsClosed) {
  Pair pair(kFirstGenerationSize, ConnType::TCP);
  uint64_t tag = 0;
  ASSERT_EQ(pair->ctrlSend(0, 5), status_t::SUCCESS);
  ASSERT_EQ(pair.server.communicator->ctrlRecv(1, &tag), status_t::SUCCESS);
  auto waiting =
      std::async(std::launch::async, [&] { return pair.server.communicator->ctrlRecv(1, &tag); });
  pair.server.communicator->close();
  EXPECT_EQ(waiting.get(), status_t::ERROR);
  EXPECT_EQ(pair.server.communicator->ctrlSend(1, 5), status_t::ERROR);
}

TEST(Communicator, whoseArgumentsWereBadSaysSo) {
  auto buffer = std::make_shared<ConnBuffer>(0, 4096, MemoryType::CPU);
  EXPECT_EQ(Communicator(buffer, 1).status(), status_t::SUCCESS);
  EXPECT_EQ(Communicator(buffer, 17).status(), status_t::ERROR);
  EXPECT_EQ(lastStatus().code(), Code::invalidArgument);
}

TEST(Communicator, isOfNoUseInAForkedChildWhichMayMakeItsOwn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP()
      << "the thread sanitizer takes a forked child's threads for its parent's and ends it";
#endif
  Pair pair(kFirstGenerationSize, ConnType::IPC);
  ASSERT_EQ(pair->put(kHere, pair.port(), 0, 0, 8, pair.type), status_t::SUCCESS);
  const pid_t child = fork();
  if (child == 0) {
    uint64_t tag = 0;
    bool refused = pair->put(kHere, pair.port(), 0, 0, 8, pair.type) == status_t::ERROR &&
                   pair->ctrlSend(0, 1) == status_t::ERROR &&
                   pair->ctrlRecv(0, &tag) == status_t::ERROR &&
                   !pair->tryPut(kHere, pair.port(), 0, 0, 8, pair.type);
    pair.client.communicator.reset();
    Party own(4096);
    _exit(refused && own.serve() == status_t::SUCCESS ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(pair->put(kHere, pair.port(), 0, 0, 8, pair.type), status_t::SUCCESS) << lastError();
}

}  // namespace
}  // namespace hmc::test
