#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "pair.h"

namespace hmc::test {
namespace {

using testing::HasSubstr;

constexpr size_t kCommunicatorSize = size_t{1} << 20;

class Transfers : public testing::TestWithParam<ConnType> {
 protected:
  Pair pair{kCommunicatorSize, GetParam()};
  ConnType type = GetParam();
};

TEST_P(Transfers, startedTogetherAreWaitedForTogether) {
  pair.client.fill(0, kCommunicatorSize, 1);
  std::vector<uint64_t> ids;
  constexpr size_t kPieces = 64;
  constexpr size_t kPiece = kCommunicatorSize / kPieces;
  for (size_t i = 0; i < kPieces; ++i) {
    uint64_t id = 0;
    ASSERT_EQ(pair->putNB(kHere, pair.port(), i * kPiece, i * kPiece, kPiece, &id, type),
              status_t::SUCCESS)
        << lastError();
    ids.push_back(id);
  }
  EXPECT_EQ(pair->wait(ids), status_t::SUCCESS) << lastError();
  EXPECT_TRUE(pair.server.bytes(0, kCommunicatorSize) == Party::pattern(kCommunicatorSize, 1));

  pair.server.fill(0, kCommunicatorSize, 2);
  uint64_t first = 0, second = 0;
  ASSERT_EQ(pair->getNB(kHere, pair.port(), 0, kCommunicatorSize / 2, kCommunicatorSize / 2, &first,
                        type),
            status_t::SUCCESS);
  ASSERT_EQ(pair->getNB(kHere, pair.port(), kCommunicatorSize / 2, 0, kCommunicatorSize / 2,
                        &second, type),
            status_t::SUCCESS);
  // In the other order than they were started.
  EXPECT_EQ(pair->wait(second), status_t::SUCCESS) << lastError();
  EXPECT_EQ(pair->wait(first), status_t::SUCCESS) << lastError();
  std::string wanted = Party::pattern(kCommunicatorSize, 2);
  EXPECT_TRUE(pair.client.bytes(0, kCommunicatorSize / 2) == wanted.substr(kCommunicatorSize / 2));
  EXPECT_TRUE(pair.client.bytes(kCommunicatorSize / 2, kCommunicatorSize / 2) ==
              wanted.substr(0, kCommunicatorSize / 2));
  for (uint64_t id : {first, second}) {
    if (id != 0) {
      EXPECT_EQ(pair->wait(id), status_t::NOT_FOUND) << "an id is waited for once";
    }
  }
}

TEST_P(Transfers, runAsPipelinesOfAnyChunk) {
  struct Cut {
    size_t chunk, inflight;
  };
  int seed = 10;
  for (Cut cut : {Cut{0, 64}, Cut{1000, 1}, Cut{4096, 3}, Cut{kCommunicatorSize, 64},
                  Cut{10 * kCommunicatorSize, 1}, Cut{kCommunicatorSize - 1, 2}}) {
    pair.client.fill(0, kCommunicatorSize, ++seed);
    EXPECT_EQ(pair->putPipeline(kHere, pair.port(), 0, 0, kCommunicatorSize, cut.chunk,
                                cut.inflight, type),
              status_t::SUCCESS)
        << lastError();
    EXPECT_TRUE(pair.server.bytes(0, kCommunicatorSize) == Party::pattern(kCommunicatorSize, seed))
        << cut.chunk;
    pair.server.fill(0, kCommunicatorSize, ++seed);
    EXPECT_EQ(pair->getPipeline(kHere, pair.port(), 7, 7, kCommunicatorSize - 7, cut.chunk,
                                cut.inflight, type),
              status_t::SUCCESS)
        << lastError();
    EXPECT_TRUE(pair.client.bytes(7, kCommunicatorSize - 7) ==
                Party::pattern(kCommunicatorSize, seed).substr(7));
  }
}

TEST_P(Transfers, tagsArriveAfterEverythingThatWasStartedBefore) {
  for (int round = 0; round < 50; ++round) {
    pair.client.fill(0, kCommunicatorSize, round);
    uint64_t id = 0;
    ASSERT_EQ(pair->putNB(kHere, pair.port(), 0, 0, kCommunicatorSize, &id, type),
              status_t::SUCCESS);
    ASSERT_EQ(pair->ctrlSend(0, static_cast<uint64_t>(round)), status_t::SUCCESS) << lastError();
    uint64_t tag = 0;
    ASSERT_EQ(pair.server.communicator->ctrlRecv(1, &tag), status_t::SUCCESS) << lastError();
    ASSERT_EQ(tag, static_cast<uint64_t>(round));
    ASSERT_TRUE(pair.server.bytes(0, kCommunicatorSize) == Party::pattern(kCommunicatorSize, round))
        << round;
    ASSERT_EQ(pair->wait(id), status_t::SUCCESS);
  }
}

TEST_P(Transfers, workFromTheServerToAClientThatListensOnNothing) {
  pair.server.fill(0, 5000, 3);
  Communicator& server = *pair.server.communicator;
  EXPECT_EQ(server.put(kHere, 0, 0, 100, 5000, type), status_t::SUCCESS) << lastError();
  EXPECT_EQ(pair.client.bytes(100, 5000), Party::pattern(5000, 3));
  pair.client.fill(0, 5000, 4);
  EXPECT_EQ(server.get(kHere, 0, 0, 0, 5000, type), status_t::SUCCESS) << lastError();
  EXPECT_EQ(pair.server.bytes(0, 5000), Party::pattern(5000, 4));
}

TEST_P(Transfers, afterDisConnectAreNotFoundAndConnectingAgainWorks) {
  EXPECT_EQ(pair->checkConn(kHere, pair.port(), type), status_t::SUCCESS) << lastError();
  ASSERT_EQ(pair->disConnect(kHere, pair.port(), type), status_t::SUCCESS);
  EXPECT_EQ(pair->put(kHere, pair.port(), 0, 0, 8, type), status_t::NOT_FOUND);
  ASSERT_EQ(pair.client.connectTo(pair.server, type), status_t::SUCCESS) << lastError();
  pair.client.fill(0, 8, 5);
  EXPECT_EQ(pair->put(kHere, pair.port(), 0, 0, 8, type), status_t::SUCCESS) << lastError();
  EXPECT_EQ(pair.server.bytes(0, 8), Party::pattern(8, 5));
}

INSTANTIATE_TEST_SUITE_P(Transport, Transfers, testing::Values(ConnType::IPC, ConnType::TCP),
                         typeName);

TEST(FirstGeneration, writesAndReadsAtTheSameOffset) {
  Party server(kCommunicatorSize), client(kCommunicatorSize);
  ASSERT_EQ(server.serveAlone(ConnType::RDMA), status_t::SUCCESS);
  ASSERT_EQ(client.connectAlone(server, ConnType::RDMA), status_t::SUCCESS) << lastError();
  EXPECT_EQ(client.communicator->checkConn(kHere, ConnType::RDMA), status_t::SUCCESS);
  client.fill(512, 4096, 1);
  EXPECT_EQ(client.communicator->writeTo(kHere, 512, 4096), status_t::SUCCESS) << lastError();
  EXPECT_EQ(server.bytes(512, 4096), Party::pattern(4096, 1));
  server.fill(100, 4096, 2);
  EXPECT_EQ(client.communicator->readFrom(kHere, 100, 4096), status_t::SUCCESS) << lastError();
  EXPECT_EQ(client.bytes(100, 4096), Party::pattern(4096, 2));
  EXPECT_EQ(client.communicator->disConnect(kHere, ConnType::RDMA), status_t::SUCCESS);
  EXPECT_EQ(client.communicator->writeTo(kHere, 0, 8), status_t::NOT_FOUND);
}

TEST(Connecting, withSeveralTypesKeepsOneControlChannel) {
  Pair pair(kCommunicatorSize, ConnType::IPC);
  // Queued before the other types connect, which must not lose it.
  ASSERT_EQ(pair->ctrlSend(0, 11), status_t::SUCCESS);
  for (ConnType type : {ConnType::TCP, ConnType::RDMA, ConnType::UCX, ConnType::AUTO}) {
    ASSERT_EQ(pair.client.connectTo(pair.server, type), status_t::SUCCESS) << lastError();
    pair.client.fill(0, 4096, static_cast<int>(type));
    EXPECT_EQ(pair->put(kHere, pair.port(), 0, 0, 4096, type), status_t::SUCCESS) << lastError();
    EXPECT_EQ(pair.server.bytes(0, 4096), Party::pattern(4096, static_cast<int>(type)));
  }
  uint64_t tag = 0;
  EXPECT_EQ(pair.server.communicator->ctrlRecv(1, &tag), status_t::SUCCESS);
  EXPECT_EQ(tag, 11U);
  // One type goes, the others stay.
  EXPECT_EQ(pair->disConnect(kHere, pair.port(), ConnType::TCP), status_t::SUCCESS);
  EXPECT_EQ(pair->put(kHere, pair.port(), 0, 0, 4096, ConnType::IPC), status_t::SUCCESS);
}

TEST(Connecting, fromBothSidesAtOnceEndsWithBothConnected) {
  for (int round = 0; round < 10; ++round) {
    Party one(4096), two(4096);
    ASSERT_EQ(one.serve(), status_t::SUCCESS) << lastError();
    ASSERT_EQ(two.serve(), status_t::SUCCESS) << lastError();
    status_t first = status_t::ERROR;
    std::thread other([&] { first = one.connectTo(two, ConnType::AUTO, 2, 1); });
    EXPECT_EQ(two.connectTo(one, ConnType::AUTO, 1, 2), status_t::SUCCESS) << lastError();
    other.join();
    EXPECT_EQ(first, status_t::SUCCESS);
    EXPECT_EQ(one.communicator->put(kHere, two.dataPort, 0, 0, 64, ConnType::AUTO),
              status_t::SUCCESS)
        << lastError();
    EXPECT_EQ(two.communicator->put(kHere, one.dataPort, 0, 0, 64, ConnType::AUTO),
              status_t::SUCCESS)
        << lastError();
    uint64_t tag = 0;
    EXPECT_EQ(one.communicator->ctrlSend(2, 5), status_t::SUCCESS) << lastError();
    EXPECT_EQ(two.communicator->ctrlRecv(1, &tag), status_t::SUCCESS) << lastError();
    EXPECT_EQ(two.communicator->ctrlSend(1, 6), status_t::SUCCESS) << lastError();
    EXPECT_EQ(one.communicator->ctrlRecv(2, &tag), status_t::SUCCESS) << lastError();
    EXPECT_EQ(tag, 6U);
  }
}

class Folder {
 public:
  Folder() { EXPECT_NE(mkdtemp(path_.data()), nullptr); }
  ~Folder() {
    unlink(Communicator::udsPathFor(path_, 0).c_str());
    rmdir(path_.c_str());
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/hmc_uds_XXXXXX";
};

TEST(Connecting, overAUnixSocketByPathOrByFolder) {
  Folder folder;
  std::string path = Communicator::udsPathFor(folder.path(), 0);
  Party server(4096);
  server.dataPort = freePort();
  ASSERT_EQ(server.communicator->initServer(kHere, server.dataPort, 0, path, ConnType::AUTO),
            status_t::SUCCESS)
      << lastError();
  uint32_t rank = 1;
  for (const std::string& given : {path, folder.path()}) {
    Party client(4096);
    Communicator::CtrlLink link;
    link.transport = Communicator::CtrlTransport::UDS;
    link.uds_path = given;
    ASSERT_EQ(client.communicator->connectTo(0, rank, kHere, server.dataPort, link, ConnType::IPC),
              status_t::SUCCESS)
        << given << ": " << lastError();
    client.fill(0, 4096, static_cast<int>(rank));
    EXPECT_EQ(client.communicator->put(kHere, server.dataPort, 0, 0, 4096, ConnType::IPC),
              status_t::SUCCESS)
        << lastError();
    EXPECT_EQ(server.bytes(0, 4096), Party::pattern(4096, static_cast<int>(rank)));
    uint64_t tag = 0;
    EXPECT_EQ(client.communicator->ctrlSend(0, 40 + rank), status_t::SUCCESS);
    EXPECT_EQ(server.communicator->ctrlRecv(rank, &tag), status_t::SUCCESS) << lastError();
    EXPECT_EQ(tag, 40 + rank);
    ++rank;
  }
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

TEST(Explaining, namesEachTransportAndWhy) {
  Pair pair(4096, ConnType::AUTO);
  std::string text = pair->explain(kHere, pair.port());
  EXPECT_THAT(text, HasSubstr("ipc: used"));
  EXPECT_THAT(text, HasSubstr("tcp: could be used"));
}

}  // namespace
}  // namespace hmc::test
