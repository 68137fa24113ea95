#include "control/socket_reader.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "raw_peer.h"
#include "test_peer.h"

namespace hmc::control {
namespace {

using namespace test;

ControlOptions withoutRing(const std::string& name) {
  ControlOptions options;
  options.name = name;
  options.ring = false;
  return options;
}

struct JoinedPair {
  JoinedPair() : mine(*client.connect(server.listen())), theirs(server.events.waitJoined()) {}
  TestPeer server{withoutRing("server")};
  TestPeer client{withoutRing("client")};
  std::shared_ptr<Channel> mine;
  std::shared_ptr<Channel> theirs;
};

// A channel whose other end is spoken by hand.
struct WithRaw {
  WithRaw() : peer(server.listen()) {
    if (peer.join("raw")) channel = server.events.waitJoined();
  }
  void say(const std::string& bytes) { ASSERT_TRUE(peer.say(std::string_view(bytes)).ok()); }
  TestPeer server{"server"};
  RawPeer peer;
  std::shared_ptr<Channel> channel;
};

std::string messageFrame(MessageKind kind, std::string_view payload) {
  auto header = frameHeader(FrameType::message, static_cast<uint8_t>(kind), 0, payload);
  return std::string(header.data(), header.size()).append(payload);
}

void echo(Channel& channel, int count) {
  for (int i = 0; i < count; ++i) {
    auto message = channel.receive(MessageKind::tag, kPatience);
    ASSERT_TRUE(message.ok()) << message.status().toString();
    ASSERT_TRUE(sendTag(channel, message->payload).ok());
  }
}

void ask(Channel& channel, int count) {
  for (int i = 0; i < count; ++i) {
    ASSERT_TRUE(sendTag(channel, std::to_string(i)).ok());
    ASSERT_EQ(receiveText(channel, MessageKind::tag), std::to_string(i));
  }
}

TEST(SocketReader, tagsGoBackAndForthThroughTheSocket) {
  JoinedPair two;
  std::jthread other([&] { echo(*two.theirs, kRoundTrips); });
  ask(*two.mine, kRoundTrips);
}

TEST(SocketReader, callsAreAnsweredBothWaysWhileThreadsRead) {
  JoinedPair two;
  std::vector<std::jthread> threads;
  threads.emplace_back([&] { echo(*two.theirs, 5000); });
  threads.emplace_back([&] { ask(*two.mine, 5000); });
  for (Channel* channel : {two.mine.get(), two.theirs.get()}) {
    threads.emplace_back([channel] {
      for (int i = 0; i < 500; ++i) {
        auto answer = channel->call(7, std::to_string(i), kPatience);
        ASSERT_TRUE(answer.ok()) << answer.status().toString();
        ASSERT_EQ(*answer, std::to_string(i) + "/7");
      }
    });
  }
}

TEST(SocketReader, severalReceiversShareWhatComes) {
  JoinedPair two;
  constexpr int kThreads = 4;
  constexpr int kEach = 3000;
  std::atomic<uint64_t> sum{0};
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        auto message = two.theirs->receive(MessageKind::tag, kPatience);
        ASSERT_TRUE(message.ok()) << message.status().toString();
        sum += std::stoull(message->payload);
      }
    });
  }
  uint64_t expected = 0;
  for (uint64_t i = 0; i < uint64_t{kThreads} * kEach; ++i) {
    ASSERT_TRUE(sendTag(*two.mine, std::to_string(i)).ok());
    expected += i;
  }
  threads.clear();
  EXPECT_EQ(sum, expected);
}

TEST(SocketReader, aReceiverOfOneKindHandsTheOthersToTheirReceivers) {
  JoinedPair two;
  constexpr int kEach = 3000;
  std::vector<std::jthread> threads;
  for (auto kind : {MessageKind::tag, MessageKind::integer, MessageKind::structure}) {
    threads.emplace_back([&two, kind] {
      for (int i = 0; i < kEach; ++i) ASSERT_EQ(receiveText(*two.theirs, kind), std::to_string(i));
    });
  }
  for (int i = 0; i < kEach; ++i) {
    for (auto kind : {MessageKind::structure, MessageKind::integer, MessageKind::tag}) {
      ASSERT_TRUE(two.mine->send(kind, 0, std::to_string(i), kPatience).ok());
    }
  }
}

TEST(SocketReader, everyOtherWordReachesTheControlThreadInOrder) {
  WithRaw raw;
  constexpr int kCount = 1000;
  std::jthread receiver([&] { echo(*raw.channel, kCount); });
  for (int i = 0; i < kCount; ++i) {
    raw.say(messageFrame(MessageKind::note, std::to_string(2 * i)) +
            messageFrame(MessageKind::tag, std::to_string(i)) +
            messageFrame(MessageKind::note, std::to_string(2 * i + 1)));
    ASSERT_EQ(raw.peer.hearWords().payload, std::to_string(i));
  }
  ASSERT_TRUE(raw.server.events.waitNotes(2 * kCount));
  auto notes = raw.server.events.notes();
  for (int i = 0; i < 2 * kCount; ++i) ASSERT_EQ(notes[i], std::to_string(i));
}

TEST(SocketReader, aMessageThatComesInPiecesIsPutTogetherByWhoeverReads) {
  WithRaw raw;
  std::string text(200000, 'p');
  std::string frame = messageFrame(MessageKind::structure, text);
  std::jthread receiver([&] {
    for (int i = 0; i < 5; ++i) {
      EXPECT_TRUE(receiveText(*raw.channel, MessageKind::structure) == text);
    }
  });
  for (int i = 0; i < 5; ++i) {
    for (size_t at = 0; at < frame.size(); at += 777) raw.say(frame.substr(at, 777));
  }
}

TEST(SocketReader, theControlThreadReadsAgainWhenNobodyElseDoes) {
  WithRaw raw;
  for (int round = 0; round < 20; ++round) {
    // The receiver has looked by itself, and does not come back.
    std::jthread receiver([&] { EXPECT_EQ(receiveText(*raw.channel, MessageKind::tag), "tag"); });
    raw.say(messageFrame(MessageKind::tag, "tag"));
    receiver.join();
    ASSERT_TRUE(raw.peer.say(FrameType::ping, "12345678").ok());
    auto heard = raw.peer.hear();
    while (heard.type == FrameType::ping) heard = raw.peer.hear();
    EXPECT_EQ(heard.type, FrameType::pong);
  }
}

TEST(SocketReader, aCallIsAnsweredRightAfterAReceiver) {
  JoinedPair two;
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(sendTag(*two.theirs, "x").ok());
    ASSERT_EQ(receiveText(*two.mine, MessageKind::tag), "x");
    ASSERT_TRUE(two.mine->call(1, "", kPatience).ok());
  }
}

TEST(SocketReader, aReceiverLearnsThatThePeerDied) {
  for (int round = 0; round < 20; ++round) {
    WithRaw raw;
    std::promise<void> received;
    std::jthread first([&] {
      EXPECT_EQ(receiveText(*raw.channel, MessageKind::tag), "last");
      received.set_value();
      auto none = raw.channel->receive(MessageKind::tag, kPatience);
      EXPECT_EQ(none.status().code(), Code::disconnected);
      EXPECT_NE(none.status().message().find("went away without a goodbye"), std::string::npos);
    });
    std::jthread second([&] {
      auto none = raw.channel->receive(MessageKind::integer, kPatience);
      EXPECT_EQ(none.status().code(), Code::disconnected);
    });
    raw.say(messageFrame(MessageKind::tag, "last"));
    if (round % 2) received.get_future().wait();
    raw.peer.hangUp();
  }
}

TEST(SocketReader, aReceiverThatMeetsNonsenseEndsTheChannelAsTheControlThreadWould) {
  auto huge = sealedHeader(FrameType::message, 0, 0, 0xfffffff0u, 0);
  auto badKind = frameHeader(FrameType::message, 200, 0, {});
  for (const auto& bytes :
       {std::string(huge.data(), huge.size()), std::string(badKind.data(), badKind.size()),
        frameBytes(static_cast<FrameType>(77))}) {
    WithRaw raw;
    std::jthread receiver([&] {
      EXPECT_EQ(receiveText(*raw.channel, MessageKind::tag), "good");
      auto none = raw.channel->receive(MessageKind::tag, kPatience);
      EXPECT_EQ(none.status().code(), Code::failed) << none.status().toString();
    });
    raw.say(messageFrame(MessageKind::tag, "good") + bytes);
    EXPECT_NE(raw.server.events.waitLeft().message().find("broke the protocol"), std::string::npos);
    EXPECT_EQ(raw.peer.hearWords().type, FrameType::bye);
    EXPECT_TRUE(raw.peer.hangsUp());
  }
}

TEST(SocketReader, goodbyeDeliversWhatWasSentBefore) {
  for (int round = 0; round < 20; ++round) {
    JoinedPair two;
    std::jthread receiver([&] {
      for (int i = 0; i < 200; ++i) {
        ASSERT_EQ(receiveText(*two.theirs, MessageKind::tag), std::to_string(i));
      }
      auto none = two.theirs->receive(MessageKind::tag, kPatience);
      EXPECT_NE(none.status().message().find("enough"), std::string::npos);
    });
    for (int i = 0; i < 200; ++i) ASSERT_TRUE(sendTag(*two.mine, std::to_string(i)).ok());
    two.mine->close(error(Code::cancelled, "enough"));
  }
}

TEST(SocketReader, closingUnderReceiversAndCallersHurtsNobody) {
  for (int round = 0; round < 30; ++round) {
    JoinedPair two;
    std::vector<std::jthread> threads;
    for (auto& end : {two.mine, two.theirs}) startTraffic(end, threads);
    if (round % 2) {
      two.mine->close(Status());
    } else {
      two.server.control.reset();
    }
  }
}

TEST(SocketReader, aReaderIsASignOfLife) {
  ControlOptions options = withoutRing("server");
  options.heartbeat = std::chrono::milliseconds(50);
  options.lease = std::chrono::milliseconds(2000);
  TestPeer server(options);
  RawPeer peer(server.listen());
  ASSERT_TRUE(peer.join("raw"));
  auto channel = server.events.waitJoined();
  // Never answers a heartbeat; its messages alone keep the channel alive, past the lease.
  Deadline until = 2 * options.lease;
  while (!until.passed()) {
    std::string frame = messageFrame(MessageKind::tag, "alive");
    ASSERT_TRUE(peer.say(std::string_view(frame)).ok());
    ASSERT_EQ(receiveText(*channel, MessageKind::tag), "alive");
  }
  EXPECT_TRUE(channel->status().ok());
}

}  // namespace
}  // namespace hmc::control
