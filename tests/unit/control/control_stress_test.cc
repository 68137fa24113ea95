#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "raw_peer.h"
#include "test_peer.h"

namespace hmc::control {
namespace {

using namespace test;

constexpr uint64_t kTags = 100000;

std::string bytesOf(uint64_t value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

struct StressedPair {
  StressedPair() : mine(*client.connect(server.listen())), theirs(server.events.waitJoined()) {
    settle(*mine, *theirs);
  }
  TestPeer server{"server"};
  TestPeer client{"client"};
  std::shared_ptr<Channel> mine;
  std::shared_ptr<Channel> theirs;
};

void sendTags(Channel& channel, MessageKind kind, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    ASSERT_TRUE(channel.send(kind, static_cast<uint16_t>(i), bytesOf(i), kPatience).ok());
  }
}

void receiveTags(Channel& channel, MessageKind kind, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    auto message = channel.receive(kind, kPatience);
    ASSERT_TRUE(message.ok()) << message.status().toString();
    ASSERT_EQ(message->payload, bytesOf(i));
    ASSERT_EQ(message->flags, static_cast<uint16_t>(i));
  }
}

TEST(ControlStress, tagsThroughTheRingKeepTheirOrder) {
  StressedPair two;
  std::jthread sender([&] { sendTags(*two.mine, MessageKind::tag, kTags); });
  receiveTags(*two.theirs, MessageKind::tag, kTags);
}

TEST(ControlStress, tagsThatNobodyReceivesAreQueuedBeyondTheRing) {
  StressedPair two;
  sendTags(*two.theirs, MessageKind::tag, kTags);
  receiveTags(*two.mine, MessageKind::tag, kTags);
}

TEST(ControlStress, tagsThroughTheSocketKeepTheirOrder) {
  TestPeer server("server");
  RawPeer peer(server.listen());
  ASSERT_TRUE(peer.join("raw"));
  auto channel = server.events.waitJoined();
  std::jthread sender([&] { sendTags(*channel, MessageKind::tag, kTags); });
  for (uint64_t i = 0; i < kTags; ++i) {
    auto heard = peer.hearWords();
    ASSERT_EQ(heard.type, FrameType::message);
    ASSERT_EQ(heard.payload, bytesOf(i));
  }
}

TEST(ControlStress, tagsFromTheSocketKeepTheirOrder) {
  TestPeer server("server");
  RawPeer peer(server.listen());
  ASSERT_TRUE(peer.join("raw"));
  auto channel = server.events.waitJoined();
  std::jthread sender([&] {
    for (uint64_t i = 0; i < kTags; ++i) {
      auto header = frameHeader(FrameType::message, 0, static_cast<uint16_t>(i), bytesOf(i));
      ASSERT_TRUE(
          peer.say(std::string_view(std::string(header.data(), header.size()) + bytesOf(i))).ok());
    }
  });
  receiveTags(*channel, MessageKind::tag, kTags);
}

TEST(ControlStress, orderHoldsWhileTheAcceptorSwitchesToTheRing) {
  for (int round = 0; round < 50; ++round) {
    TestPeer server("server");
    TestPeer client("client");
    auto mine = *client.connect(server.listen());
    auto theirs = server.events.waitJoined();
    std::jthread sender([&] { sendTags(*theirs, MessageKind::tag, 500); });
    sendTags(*mine, MessageKind::tag, 500);
    receiveTags(*mine, MessageKind::tag, 500);
    receiveTags(*theirs, MessageKind::tag, 500);
  }
}

TEST(ControlStress, twoThreadsSendAndTwoReceiveOnEachSide) {
  StressedPair two;
  std::vector<std::jthread> threads;
  for (auto* ends : {&two.mine, &two.theirs}) {
    Channel& from = **ends;
    Channel& to = ends == &two.mine ? *two.theirs : *two.mine;
    for (auto kind : {MessageKind::tag, MessageKind::integer}) {
      threads.emplace_back([&from, kind] { sendTags(from, kind, 20000); });
      threads.emplace_back([&to, kind] { receiveTags(to, kind, 20000); });
    }
  }
}

TEST(ControlStress, largeAndSmallMessagesFromSeveralThreadsStayWhole) {
  StressedPair two;
  constexpr int kEach = 60;
  std::vector<std::jthread> senders;
  for (char name : {'a', 'b', 'c'}) {
    senders.emplace_back([&two, name] {
      for (int i = 0; i < kEach; ++i) {
        size_t size = i % 3 == 0 ? 200000 : i % 3 == 1 ? 20000 : 10;
        Status status =
            two.mine->send(MessageKind::structure, 0, std::string(size, name), kPatience);
        ASSERT_TRUE(status.ok()) << status.toString();
      }
    });
  }
  for (int i = 0; i < 3 * kEach; ++i) {
    auto message = two.theirs->receive(MessageKind::structure, kPatience);
    ASSERT_TRUE(message.ok()) << message.status().toString();
    ASSERT_EQ(message->payload.find_first_not_of(message->payload[0]), std::string::npos);
  }
}

TEST(ControlStress, pingPongOfTags) {
  StressedPair two;
  std::jthread echo([&] {
    for (int i = 0; i < kRoundTrips; ++i) {
      auto message = two.theirs->receive(MessageKind::tag, kPatience);
      ASSERT_TRUE(message.ok());
      ASSERT_TRUE(two.theirs->send(MessageKind::tag, 0, message->payload, kPatience).ok());
    }
  });
  for (int i = 0; i < kRoundTrips; ++i) {
    ASSERT_TRUE(two.mine->send(MessageKind::tag, 0, bytesOf(i), kPatience).ok());
    ASSERT_EQ(receiveText(*two.mine, MessageKind::tag), bytesOf(i));
  }
}

TEST(ControlStress, callsFromManyThreadsGetTheirOwnAnswers) {
  StressedPair two;
  std::vector<std::jthread> callers;
  for (uint16_t t = 1; t <= 8; ++t) {
    callers.emplace_back([&two, t] {
      Channel& channel = t % 2 ? *two.mine : *two.theirs;
      for (int i = 0; i < 500; ++i) {
        auto answer = channel.call(t, std::to_string(i), kPatience);
        ASSERT_TRUE(answer.ok()) << answer.status().toString();
        ASSERT_EQ(*answer, std::to_string(i) + "/" + std::to_string(t));
      }
    });
  }
}

TEST(ControlStress, closingUnderSendersAndReceiversHurtsNobody) {
  for (int round = 0; round < 30; ++round) {
    StressedPair two;
    std::vector<std::jthread> threads;
    for (auto& end : {two.mine, two.theirs}) startTraffic(end, threads);
    ASSERT_TRUE(two.client.events.joinedCount() == 1);
    if (round % 2) {
      two.mine->close(Status());
    } else {
      two.server.control.reset();
    }
  }
}

// Each must hear from the other soon, or be told why not: neither may wait for the other's dial.
TEST(ControlStress, bothDialWhileOneClosesTheChannelThatTheyHave) {
  TestPeer a("a");
  TestPeer b("b");
  const std::string atA = a.listen();
  const std::string atB = b.listen();
  auto nearlyHung = [](const auto& connect) {
    const auto before = Deadline::Clock::now();
    (void)connect();
    return Deadline::Clock::now() - before > std::chrono::seconds(3);
  };
  for (int round = 0; round < 400; ++round) {
    TestPeer& closes = round % 2 == 0 ? a : b;
    const std::string& other = round % 2 == 0 ? atB : atA;
    auto channel = closes.connect(other);
    if (!channel.ok()) continue;
    bool hung[2] = {};
    {
      std::jthread toB([&] { hung[0] = nearlyHung([&] { return a.connect(atB); }); });
      std::jthread toA([&] { hung[1] = nearlyHung([&] { return b.connect(atA); }); });
      (*channel)->close(error(Code::disconnected, "the test closes it"));
    }
    ASSERT_FALSE(hung[0] || hung[1]) << "round " << round;
  }
}

}  // namespace
}  // namespace hmc::control
