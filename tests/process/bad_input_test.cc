#include <gmock/gmock.h>

#include <functional>

#include "pair.h"

namespace hmc::test {
namespace {

using testing::HasSubstr;

constexpr size_t kBadInputSize = 4096;
constexpr size_t kNearEnd = ~size_t{0} - 7;  // 2^64 - 8

class Edges : public testing::TestWithParam<ConnType> {};

using Operation = std::function<status_t(size_t local, size_t remote, size_t size)>;

std::vector<Operation> everyOperation(Pair& pair) {
  uint16_t port = pair.port();
  Communicator& comm = *pair;
  ConnType type = pair.type;
  auto finish = [&comm](status_t started, uint64_t id) {
    return started == status_t::SUCCESS ? comm.wait(id) : started;
  };
  return {
      [=, &comm](size_t l, size_t r, size_t n) { return comm.put(kHere, port, l, r, n, type); },
      [=, &comm](size_t l, size_t r, size_t n) { return comm.get(kHere, port, l, r, n, type); },
      [=, &comm](size_t l, size_t r, size_t n) {
        uint64_t id = 0;
        status_t started = comm.putNB(kHere, port, l, r, n, &id, type);
        return finish(started, id);
      },
      [=, &comm](size_t l, size_t r, size_t n) {
        uint64_t id = 0;
        status_t started = comm.getNB(kHere, port, l, r, n, &id, type);
        return finish(started, id);
      },
      [=, &comm](size_t l, size_t r, size_t n) {
        return comm.putPipeline(kHere, port, l, r, n, 1000, 4, type);
      },
      [=, &comm](size_t l, size_t r, size_t n) {
        return comm.getPipeline(kHere, port, l, r, n, 1000, 4, type);
      },
  };
}

struct Range {
  size_t local, remote, size;
};

TEST_P(Edges, upToTheEndIsFine) {
  Pair pair(kBadInputSize, GetParam());
  for (const auto& operation : everyOperation(pair)) {
    for (Range range : {Range{0, 0, kBadInputSize}, Range{kBadInputSize - 1, 0, 1},
                        Range{0, kBadInputSize - 1, 1}, Range{kBadInputSize, kBadInputSize, 0},
                        Range{0, 0, 0}, Range{1, 0, kBadInputSize - 1}}) {
      EXPECT_EQ(operation(range.local, range.remote, range.size), status_t::SUCCESS)
          << range.local << " " << range.remote << " " << range.size << ": " << lastError();
    }
  }
}

TEST_P(Edges, anythingBeyondIsRefusedAndTouchesNothing) {
  Pair pair(kBadInputSize, GetParam());
  pair.server.fill(0, kBadInputSize, 1);
  pair.client.fill(0, kBadInputSize, 2);
  for (const auto& operation : everyOperation(pair)) {
    for (Range range :
         {Range{0, 0, kBadInputSize + 1}, Range{kBadInputSize, 0, 1}, Range{0, kBadInputSize, 1},
          Range{1, 0, kBadInputSize}, Range{0, 1, kBadInputSize}, Range{kNearEnd, 0, 16},
          Range{0, kNearEnd, 16}, Range{kNearEnd, kNearEnd, 16}, Range{8, 8, kNearEnd},
          Range{0, 0, ~size_t{0}}, Range{1, 1, ~size_t{0}}, Range{kBadInputSize + 1, 0, 0},
          Range{0, kBadInputSize + 1, 0}}) {
      EXPECT_EQ(operation(range.local, range.remote, range.size), status_t::ERROR)
          << range.local << " " << range.remote << " " << range.size;
      EXPECT_THAT(lastError(), HasSubstr("4096"));
    }
  }
  EXPECT_EQ(pair.server.bytes(0, kBadInputSize), Party::pattern(kBadInputSize, 1));
  EXPECT_EQ(pair.client.bytes(0, kBadInputSize), Party::pattern(kBadInputSize, 2));
  EXPECT_EQ(pair->put(kHere, pair.port(), 0, 0, kBadInputSize, pair.type), status_t::SUCCESS);
}

TEST_P(Edges, aRefusedCallLeavesTheConnectionThatDisConnectEnds) {
  Variable wait("HMC_TIMEOUT_MS", "1000");
  Pair pair(kBadInputSize, GetParam());
  EXPECT_EQ(pair->put(kHere, pair.port(), 0, 0, kBadInputSize + 1, pair.type), status_t::ERROR);
  EXPECT_EQ(pair->checkConn(kHere, pair.port(), pair.type), status_t::SUCCESS) << lastError();
  EXPECT_EQ(pair->disConnect(kHere, pair.port(), pair.type), status_t::SUCCESS);
  EXPECT_EQ(pair->put(kHere, pair.port(), 0, 0, 8, pair.type), status_t::NOT_FOUND);
  EXPECT_TRUE(
      eventually([&] { return pair.server.communicator->ctrlSend(1, 1) != status_t::SUCCESS; }));
}

TEST_P(Edges, sentenceNamesTheNumbers) {
  Pair pair(kBadInputSize, GetParam());
  EXPECT_EQ(pair->put(kHere, pair.port(), 0, 4000, 100, pair.type), status_t::ERROR);
  EXPECT_THAT(lastError(), HasSubstr("100"));
  EXPECT_THAT(lastError(), HasSubstr("4000"));
  EXPECT_THAT(lastError(), HasSubstr("4096"));
}

INSTANTIATE_TEST_SUITE_P(Transport, Edges, testing::Values(ConnType::IPC, ConnType::TCP), typeName);

TEST(BadInput, buffersOfDifferentSizeAreCheckedAgainstTheirOwnEnds) {
  Party server(8192), client(100);
  ASSERT_EQ(server.serve(), status_t::SUCCESS) << lastError();
  ASSERT_EQ(client.connectTo(server, ConnType::AUTO), status_t::SUCCESS) << lastError();
  auto put = [&](size_t local, size_t remote, size_t size) {
    return client.communicator->put(kHere, server.dataPort, local, remote, size, ConnType::AUTO);
  };
  EXPECT_EQ(put(0, 8092, 100), status_t::SUCCESS) << lastError();
  EXPECT_EQ(put(0, 8093, 100), status_t::ERROR);
  EXPECT_EQ(put(0, 0, 101), status_t::ERROR);
}

TEST(BadInput, portInUseIsNamedAndTheFirstServerGoesOn) {
  Pair pair(kBadInputSize, ConnType::AUTO);
  Party second(kBadInputSize);
  uint16_t taken = pair.port();
  uint16_t open = freePort();
  EXPECT_EQ(second.communicator->initServer(kHere, taken, 0, "", ConnType::AUTO), status_t::ERROR);
  EXPECT_THAT(lastError(), HasSubstr(std::to_string(taken)));
  EXPECT_EQ(second.communicator->initServer(kHere, taken, open, "", ConnType::AUTO),
            status_t::ERROR);
  EXPECT_THAT(lastError(), HasSubstr(std::to_string(taken)));
  // The listener that could be opened did not stay open.
  EXPECT_EQ(second.communicator->initServer(kHere, open, 0, "", ConnType::AUTO), status_t::SUCCESS)
      << lastError();
  EXPECT_EQ(pair->put(kHere, pair.port(), 0, 0, 64, pair.type), status_t::SUCCESS) << lastError();
  Party late(kBadInputSize);
  EXPECT_EQ(late.connectTo(pair.server, ConnType::AUTO, 0, 2), status_t::SUCCESS) << lastError();
}

TEST(BadInput, unknownPeersAndRanksAreNotFound) {
  Variable wait("HMC_TIMEOUT_MS", "100");
  Variable receive("HMC_RECV_TIMEOUT_MS", "100");
  Pair pair(kBadInputSize, ConnType::AUTO);
  EXPECT_EQ(pair->put(kHere, 1, 0, 0, 8, ConnType::AUTO), status_t::NOT_FOUND);
  EXPECT_THAT(lastError(), HasSubstr("127.0.0.1:1"));
  EXPECT_EQ(pair->get("10.9.8.7", 5, 0, 0, 8, ConnType::AUTO), status_t::NOT_FOUND);
  EXPECT_EQ(pair->writeTo("10.9.8.7", 0, 8, ConnType::AUTO), status_t::NOT_FOUND);
  EXPECT_EQ(pair->checkConn("10.9.8.7", 5, ConnType::AUTO), status_t::NOT_FOUND);
  EXPECT_EQ(pair->ctrlSend(77, 1), status_t::NOT_FOUND);
  EXPECT_THAT(lastError(), HasSubstr("77"));
  uint64_t tag = 0;
  EXPECT_EQ(pair->ctrlRecv(77, &tag), status_t::NOT_FOUND);
  EXPECT_EQ(pair->ctrlRecv(0, &tag), status_t::TIMEOUT);
  EXPECT_EQ(pair->ctrlRecv(0, nullptr), status_t::ERROR);
}

TEST(BadInput, nobodyListeningIsAnErrorThatNamesTheAddress) {
  Variable wait("HMC_CONNECT_TIMEOUT_MS", "300");
  Party client(kBadInputSize);
  uint16_t port = freePort();
  EXPECT_NE(client.communicator->connectTo(kHere, port, ConnType::TCP), status_t::SUCCESS);
  EXPECT_THAT(lastError(), HasSubstr(std::to_string(port)));
  Communicator::CtrlLink link;
  EXPECT_NE(client.communicator->connectTo(0, 1, "not an address", port, link, ConnType::TCP),
            status_t::SUCCESS);
  EXPECT_THAT(lastError(), HasSubstr("not an address"));
}

TEST(BadInput, closingTwiceIsSuccess) {
  Pair pair(kBadInputSize, ConnType::AUTO);
  for (int twice = 0; twice < 2; ++twice) {
    EXPECT_EQ(pair->disConnect(kHere, pair.port(), pair.type), status_t::SUCCESS);
    EXPECT_EQ(pair->disConnect(kHere, pair.type), status_t::SUCCESS);
    EXPECT_EQ(pair->closeCtrlPeer(0), status_t::SUCCESS);
    EXPECT_EQ(pair->closeCtrl(), status_t::SUCCESS);
    EXPECT_EQ(pair.server.communicator->closeServer(), status_t::SUCCESS);
    EXPECT_EQ(pair->closeServer(), status_t::SUCCESS);
  }
  EXPECT_NE(pair->put(kHere, pair.port(), 0, 0, 8, pair.type), status_t::SUCCESS);
}

TEST(BadInput, waitingForNothing) {
  Pair pair(kBadInputSize, ConnType::AUTO);
  EXPECT_EQ(pair->wait(0), status_t::SUCCESS);
  EXPECT_EQ(pair->wait(std::vector<uint64_t>{}), status_t::SUCCESS);
  EXPECT_EQ(pair->wait(123456), status_t::NOT_FOUND);
  EXPECT_THAT(lastError(), HasSubstr("123456"));
  EXPECT_EQ(pair->wait(std::vector<uint64_t>{0, 99, 0}), status_t::NOT_FOUND);
}

TEST(BadInput, aConnTypeThatIsNoneIsInvalidConfig) {
  Pair pair(kBadInputSize, ConnType::AUTO);
  auto none = static_cast<ConnType>(42);
  EXPECT_EQ(pair->put(kHere, pair.port(), 0, 0, 8, none), status_t::INVALID_CONFIG);
  EXPECT_EQ(pair->initServer(kHere, freePort(), 0, "", none), status_t::INVALID_CONFIG);
  EXPECT_EQ(pair->connectTo(kHere, pair.port(), none), status_t::INVALID_CONFIG);
  EXPECT_EQ(pair.client.connectTo(pair.server, none), status_t::INVALID_CONFIG);
  EXPECT_THAT(lastError(), HasSubstr("42"));
}

TEST(BadInput, numbersOfChannelsOutsideOneToSixteenAreRefused) {
  for (size_t channels : {size_t{0}, size_t{17}, ~size_t{0}}) {
    Party party(kBadInputSize, channels);
    EXPECT_EQ(party.serve(), status_t::ERROR);
    EXPECT_THAT(lastError(), HasSubstr("num_chs is " + std::to_string(channels)));
  }
  Party most(kBadInputSize, 16);
  EXPECT_EQ(most.serve(), status_t::SUCCESS) << lastError();
}

TEST(BadInput, missingPlacesForAnswersAreErrors) {
  Pair pair(kBadInputSize, ConnType::AUTO);
  EXPECT_EQ(pair->putNB(kHere, pair.port(), 0, 0, 8, nullptr, pair.type), status_t::ERROR);
  EXPECT_EQ(pair->putPipeline(kHere, pair.port(), 0, 0, 8, 0, 0, pair.type), status_t::ERROR);
  EXPECT_EQ(pair->sendDataTo(kHere, pair.port(), nullptr, 8, MemoryType::CPU, pair.type),
            status_t::ERROR);
  Communicator nothing(nullptr);
  EXPECT_EQ(nothing.closeServer(), status_t::ERROR);
  EXPECT_THAT(lastError(), HasSubstr("ConnBuffer"));
}

TEST(BadInput, strictTransportAllowsNoSubstitute) {
  Variable without("HMC_TRANSPORTS", "ipc,tcp");
  Variable strict("HMC_STRICT_TRANSPORT", "1");
  Party party(kBadInputSize);
  EXPECT_EQ(party.serve(ConnType::RDMA), status_t::UNSUPPORT);
  EXPECT_THAT(lastError(), HasSubstr("HMC_STRICT_TRANSPORT"));
  EXPECT_EQ(party.communicator->connectTo(kHere, 1, ConnType::UCX), status_t::UNSUPPORT);
  EXPECT_EQ(party.serve(ConnType::TCP), status_t::SUCCESS) << lastError();
}

TEST(BadInput, aTransportThatIsSwitchedOffIsUnsupported) {
  std::optional<Party> server;
  {
    Variable only("HMC_TRANSPORTS", "tcp");
    server.emplace(kBadInputSize);
  }
  ASSERT_EQ(server->serve(), status_t::SUCCESS) << lastError();
  Party client(kBadInputSize);
  EXPECT_EQ(client.connectTo(*server, ConnType::IPC), status_t::UNSUPPORT);
  EXPECT_THAT(lastError(), HasSubstr("ipc"));
  EXPECT_EQ(client.connectTo(*server, ConnType::TCP), status_t::SUCCESS) << lastError();
}

TEST(BadInput, aWrongSecretIsRefused) {
  std::optional<Party> server, friendly, stranger;
  {
    Variable secret("HMC_SECRET", "open sesame");
    server.emplace(kBadInputSize);
    friendly.emplace(kBadInputSize);
  }
  ASSERT_EQ(server->serve(), status_t::SUCCESS) << lastError();
  for (const char* guess : {"open barley", ""}) {
    Variable secret("HMC_SECRET", guess);
    stranger.emplace(kBadInputSize);
    EXPECT_EQ(stranger->connectTo(*server, ConnType::TCP), status_t::ERROR);
    EXPECT_THAT(lastError(), HasSubstr("secret"));
  }
  EXPECT_EQ(friendly->connectTo(*server, ConnType::TCP), status_t::SUCCESS) << lastError();
}

TEST(BadInput, aSettingThatMakesNoSenseIsNamed) {
  Variable lease("HMC_LEASE_MS", "soon");
  Party party(kBadInputSize);
  EXPECT_EQ(party.serve(), status_t::ERROR);
  EXPECT_THAT(lastError(), HasSubstr("HMC_LEASE_MS"));
}

}  // namespace
}  // namespace hmc::test
