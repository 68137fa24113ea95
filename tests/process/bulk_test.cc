#include <gmock/gmock.h>

#include <thread>

#include "pair.h"

namespace hmc::test {
namespace {

using testing::HasSubstr;

constexpr size_t kBuffer = 4096;
constexpr size_t kLarge = size_t{1} << 20;

struct Outcome {
  status_t status;
  std::string sentence;
};

Outcome send(Communicator& from, uint16_t port, std::string data, ConnType type) {
  status_t status = from.sendDataTo(kHere, port, data.data(), data.size(), MemoryType::CPU, type);
  return {status, lastError()};
}

struct Received {
  Outcome outcome;
  std::string bytes;
};

Received receive(Communicator& at, uint16_t port, size_t room, ConnType type) {
  Received got;
  got.bytes.assign(room, '?');
  size_t count = 12345;
  got.outcome.status =
      at.recvDataFrom(kHere, port, got.bytes.data(), room, MemoryType::CPU, &count, type);
  got.outcome.sentence = lastError();
  got.bytes.resize(std::min(count, room));
  return got;
}

class Bulk : public testing::TestWithParam<ConnType> {
 protected:
  Pair pair{kBuffer, GetParam()};
  ConnType type = GetParam();

  // The client sends, the server receives.
  void expectMoves(size_t size, size_t room, int seed) {
    std::string data = Party::pattern(size, seed);
    Outcome sent;
    std::thread sender([&] { sent = send(*pair, pair.port(), data, type); });
    Received got = receive(*pair.server.communicator, 0, room, type);
    sender.join();
    EXPECT_EQ(sent.status, status_t::SUCCESS) << size << ": " << sent.sentence;
    EXPECT_EQ(got.outcome.status, status_t::SUCCESS) << size << ": " << got.outcome.sentence;
    EXPECT_TRUE(got.bytes == data) << size << " bytes arrived changed, " << got.bytes.size();
  }
};

TEST_P(Bulk, movesEverySizeUnchanged) {
  int seed = 0;
  // Around a slot, the slots together, the buffer, and what is registered for one call.
  for (size_t around : {1, 128, 2048, 4096, 1 << 20}) {
    for (size_t size : {around - 1, around, around + 1}) expectMoves(size, size, ++seed);
  }
  expectMoves(100003, 100003, ++seed);
}

TEST_P(Bulk, doesNotMindWhoComesFirst) {
  for (int i = 0; i < 20; ++i) {
    const std::string data = Party::pattern(5000, i);
    std::atomic<bool> begun{false};
    auto begin = [&](bool first) {
      if (first) begun = true;
      while (!begun) std::this_thread::yield();
    };
    const bool senderFirst = i % 2 == 0;
    Outcome sent;
    std::thread sender([&] {
      begin(senderFirst);
      sent = send(*pair, pair.port(), data, type);
    });
    begin(!senderFirst);
    Received got = receive(*pair.server.communicator, 0, data.size(), type);
    sender.join();
    EXPECT_EQ(sent.status, status_t::SUCCESS) << sent.sentence;
    EXPECT_TRUE(got.bytes == data);
  }
}

TEST_P(Bulk, flagIsWhatWasSentNotWhatThereWasRoomFor) {
  expectMoves(1500, 100000, 1);
  expectMoves(0, 100000, 2);
}

TEST_P(Bulk, aReceiverThatIsTooSmallTellsBothAndTheNextTryWorks) {
  for (int tries = 0; tries < 3; ++tries) {
    Outcome sent;
    std::thread sender([&] { sent = send(*pair, pair.port(), Party::pattern(50000, 1), type); });
    Received got = receive(*pair.server.communicator, 0, 2000, type);
    sender.join();
    EXPECT_EQ(got.outcome.status, status_t::ERROR);
    EXPECT_THAT(got.outcome.sentence, HasSubstr("2000"));
    EXPECT_EQ(got.bytes.size(), 0U);
    EXPECT_EQ(sent.status, status_t::ERROR);
    EXPECT_THAT(sent.sentence, HasSubstr("2000"));
    expectMoves(20000, 20000, 2 + tries);
  }
}

TEST_P(Bulk, bothDirectionsAtOnce) {
  std::string there = Party::pattern(60001, 3);
  std::string back = Party::pattern(70001, 4);
  Outcome sentThere, sentBack;
  Received gotThere, gotBack;
  {
    std::thread one([&] { sentThere = send(*pair, pair.port(), there, type); });
    std::thread two([&] { sentBack = send(*pair.server.communicator, 0, back, type); });
    std::thread three(
        [&] { gotThere = receive(*pair.server.communicator, 0, there.size(), type); });
    gotBack = receive(*pair, pair.port(), back.size(), type);
    for (auto* thread : {&one, &two, &three}) thread->join();
  }
  EXPECT_EQ(sentThere.status, status_t::SUCCESS) << sentThere.sentence;
  EXPECT_EQ(sentBack.status, status_t::SUCCESS) << sentBack.sentence;
  EXPECT_TRUE(gotThere.bytes == there);
  EXPECT_TRUE(gotBack.bytes == back);
}

INSTANTIATE_TEST_SUITE_P(Transport, Bulk, testing::Values(ConnType::IPC, ConnType::TCP), typeName);

TEST(BulkByAddressAlone, movesBothWays) {
  Party server(kLarge), client(kLarge);
  ASSERT_EQ(server.serveAlone(ConnType::UCX), status_t::SUCCESS);
  ASSERT_EQ(client.connectAlone(server, ConnType::UCX), status_t::SUCCESS) << lastError();
  struct Way {
    Communicator *from, *to;
  };
  for (Way way : {Way{client.communicator.get(), server.communicator.get()},
                  Way{server.communicator.get(), client.communicator.get()}}) {
    std::string data = Party::pattern(3 * kLarge + 11, 5);
    std::string got(data.size(), '\0');
    status_t sent = status_t::ERROR;
    std::thread sender([&] {
      sent = way.from->sendDataTo(kHere, data.data(), data.size(), MemoryType::CPU, ConnType::UCX);
    });
    size_t count = 0;
    EXPECT_EQ(
        way.to->recvDataFrom(kHere, got.data(), got.size(), MemoryType::CPU, &count, ConnType::UCX),
        status_t::SUCCESS)
        << lastError();
    sender.join();
    EXPECT_EQ(sent, status_t::SUCCESS);
    EXPECT_EQ(count, data.size());
    EXPECT_TRUE(got == data);
  }
}

TEST(BulkTimeout, aReceiverThatGaveUpLeavesNothingBehind) {
  Variable wait("HMC_TIMEOUT_MS", "300");
  Pair pair(kBuffer, ConnType::TCP);
  // Nobody sends: the receiver's offers lie in the sender's queue.
  for (int tries = 0; tries < 3; ++tries) {
    EXPECT_EQ(receive(*pair.server.communicator, 0, 100, ConnType::TCP).outcome.status,
              status_t::TIMEOUT);
  }
  // A sender that takes one of those offers finds out that nobody is there any more.
  EXPECT_EQ(send(*pair, pair.port(), Party::pattern(100, 1), ConnType::TCP).status,
            status_t::TIMEOUT);
}

TEST(BulkTimeout, aSenderAfterAReceiverThatGaveUpServesTheNextOne) {
  std::optional<Party> server;
  {
    Variable soon("HMC_TIMEOUT_MS", "1000");
    server.emplace(kBuffer);
  }
  ASSERT_EQ(server->serve(), status_t::SUCCESS);
  Party client(kBuffer);
  ASSERT_EQ(client.connectTo(*server, ConnType::TCP), status_t::SUCCESS) << lastError();
  EXPECT_EQ(receive(*server->communicator, 0, 50000, ConnType::TCP).outcome.status,
            status_t::TIMEOUT);
  std::string data = Party::pattern(50000, 6);
  Outcome sent;
  std::thread sender(
      [&] { sent = send(*client.communicator, server->dataPort, data, ConnType::TCP); });
  Received got;
  // Each try may be too short for a busy machine; one of them gets everything.
  EXPECT_TRUE(eventually([&] {
    got = receive(*server->communicator, 0, 50000, ConnType::TCP);
    return got.outcome.status == status_t::SUCCESS;
  }));
  sender.join();
  EXPECT_EQ(sent.status, status_t::SUCCESS) << sent.sentence;
  EXPECT_TRUE(got.bytes == data);
}

}  // namespace
}  // namespace hmc::test
