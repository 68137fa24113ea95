#include <gmock/gmock.h>

#include <thread>

#include "pair.h"

namespace hmc::test {
namespace {

using testing::HasSubstr;

class Threads : public testing::TestWithParam<ConnType> {};

TEST_P(Threads, sixteenShareOneCommunicator) {
  constexpr size_t kThreads = 16;
  constexpr size_t kSlice = 8192;
  Pair pair(kThreads * kSlice, GetParam());
  std::vector<std::string> problems(kThreads);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      size_t place = t * kSlice;
      for (int round = 0; round < 100 && problems[t].empty(); ++round) {
        int seed = static_cast<int>(t) * 1000 + round;
        size_t half = kSlice / 2;
        pair.client.fill(place, half, seed);
        uint64_t id = 0;
        status_t status = round % 2
                              ? pair->put(kHere, pair.port(), place, place, half, pair.type)
                              : pair->putNB(kHere, pair.port(), place, place, half, &id, pair.type);
        if (status == status_t::SUCCESS) status = pair->wait(id);
        if (status == status_t::SUCCESS)
          status = pair->get(kHere, pair.port(), place + half, place, half, pair.type);
        if (status != status_t::SUCCESS) problems[t] = lastError();
        if (pair.client.bytes(place + half, half) != Party::pattern(half, seed))
          problems[t] += "wrong bytes in round " + std::to_string(round);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& problem : problems) EXPECT_EQ(problem, "");
}

INSTANTIATE_TEST_SUITE_P(Transport, Threads, testing::Values(ConnType::IPC, ConnType::TCP),
                         typeName);

TEST(Crowd, ofThirtyTwoProcessesIsServedByOne) {
  constexpr uint32_t kPeers = 32;
  constexpr size_t kSlice = 4096;
  Peer server;
  ASSERT_TRUE(server.serve(kPeers * kSlice).ok);
  std::vector<std::unique_ptr<Peer>> peers;
  for (uint32_t i = 0; i < kPeers; ++i) {
    peers.push_back(std::make_unique<Peer>());
    peers[i]->say("communicator 4096");
  }
  // All at once; half of them over each transport.
  auto type = [](uint32_t i) { return i % 2 ? "IPC" : "TCP"; };
  for (uint32_t i = 0; i < kPeers; ++i) {
    ASSERT_TRUE(peers[i]->answer().ok);
    peers[i]->say("connect 0 " + std::to_string(i + 1) + " " + server.address() + " " +
                  std::to_string(server.controlPort()) + " " + type(i));
    peers[i]->say("fill 0 4096 " + std::to_string(i));
    peers[i]->say("put " + server.address() + " 0 " + std::to_string(i * kSlice) + " 4096 " +
                  type(i));
    peers[i]->say("tag 0 " + std::to_string(500 + i));
  }
  for (uint32_t i = 0; i < kPeers; ++i) {
    for (const char* step : {"connect", "fill", "put", "tag"}) {
      Reply reply = peers[i]->answer();
      EXPECT_TRUE(reply.ok) << "peer " << i << ", " << step << ": " << reply;
    }
    EXPECT_EQ(server.ask("recvtag " + std::to_string(i + 1)).text, std::to_string(500 + i));
    EXPECT_TRUE(server.check(i * kSlice, kSlice, static_cast<int>(i)).ok) << "peer " << i;
  }
  for (auto& peer : peers) EXPECT_EQ(peer->finish(), 0);
  EXPECT_TRUE(server.check(0, kSlice, 0).ok);
}

// Several clients on one host that listen on nothing: (ip, 0) cannot say which.
TEST(Crowd, ofClientsWithoutPortsIsToldApartByTheirOwn) {
  Party server(4096);
  ASSERT_EQ(server.serve(), status_t::SUCCESS) << lastError();
  std::vector<std::unique_ptr<Party>> clients;
  for (uint32_t rank = 1; rank <= 3; ++rank) {
    clients.push_back(std::make_unique<Party>(4096));
    ASSERT_EQ(clients.back()->connectTo(server, ConnType::TCP, 0, rank), status_t::SUCCESS)
        << lastError();
  }
  EXPECT_EQ(server.communicator->put(kHere, 0, 0, 0, 64, ConnType::TCP), status_t::NOT_FOUND);
  std::string sentence = lastError();
  EXPECT_THAT(sentence, HasSubstr("3 peers"));
  std::string list = sentence.substr(sentence.find('(') + 1);
  server.fill(0, 64, 1);
  for (const auto& client : clients) client->fill(0, 64, 0);
  for (size_t i = 0; i < clients.size(); ++i) {
    size_t used = 0;
    auto port = static_cast<uint16_t>(std::stoi(list, &used));
    list.erase(0, used + 2);
    EXPECT_EQ(server.communicator->put(kHere, port, 0, 0, 64, ConnType::TCP), status_t::SUCCESS)
        << lastError();
    size_t reached = 0;
    for (const auto& client : clients) reached += client->bytes(0, 64) == Party::pattern(64, 1);
    EXPECT_EQ(reached, i + 1);
  }
  // When one is left, (ip, 0) says enough.
  clients.resize(1);
  clients[0]->fill(0, 64, 0);
  EXPECT_TRUE(eventually([&] {
    return server.communicator->put(kHere, 0, 0, 0, 64, ConnType::TCP) == status_t::SUCCESS;
  })) << lastError();
  EXPECT_EQ(clients[0]->bytes(0, 64), Party::pattern(64, 1));
}

}  // namespace
}  // namespace hmc::test
