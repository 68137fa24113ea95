#include "control/channel.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>
#include <vector>

#include "base/codec.h"
#include "base/error.h"
#include "raw_peer.h"
#include "test_peer.h"

namespace hmc::control {
namespace {

using namespace test;

struct Two {
  Two() {
    auto dialled = client.connect(server.listen());
    if (!dialled.ok()) return;
    mine = *dialled;
    theirs = server.events.waitJoined();
  }
  TestPeer server{"server"};
  TestPeer client{"client"};
  std::shared_ptr<Channel> mine;
  std::shared_ptr<Channel> theirs;
};

TEST(Channel, deliversEveryKindBothWays) {
  Two two;
  for (auto kind : {MessageKind::tag, MessageKind::integer, MessageKind::structure}) {
    ASSERT_TRUE(two.mine->send(kind, 5, "there", kPatience).ok());
    auto got = two.theirs->receive(kind, kPatience);
    ASSERT_TRUE(got.ok()) << got.status().toString();
    EXPECT_EQ(got->kind, kind);
    EXPECT_EQ(got->flags, 5);
    EXPECT_EQ(got->payload, "there");
    ASSERT_TRUE(two.theirs->send(kind, 6, "back", kPatience).ok());
    EXPECT_EQ(receiveText(*two.mine, kind), "back");
  }
}

TEST(Channel, queuesWhatArrivesBeforeSomebodyAsks) {
  Two two;
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(sendTag(*two.mine, std::to_string(i)).ok());
  ASSERT_TRUE(two.mine->send(MessageKind::integer, 0, "integer", kPatience).ok());
  EXPECT_EQ(receiveText(*two.theirs, MessageKind::integer), "integer");
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(receiveText(*two.theirs, MessageKind::tag), std::to_string(i));
  }
}

TEST(Channel, tellsWhatIsUnread) {
  Two two;
  EXPECT_FALSE(two.theirs->unread());
  ASSERT_TRUE(two.mine->send(MessageKind::integer, 0, "1", kPatience).ok());
  ASSERT_TRUE(sendTag(*two.mine, "2").ok());
  EXPECT_EQ(receiveText(*two.theirs, MessageKind::tag), "2");
  EXPECT_TRUE(two.theirs->unread());
  EXPECT_TRUE(two.theirs->unread(MessageKind::integer));
  EXPECT_FALSE(two.theirs->unread(MessageKind::tag));
}

TEST(Channel, receiveHonoursItsDeadline) {
  Two two;
  auto none = two.mine->receive(MessageKind::tag, std::chrono::milliseconds(20));
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().code(), Code::deadlineExceeded);
  EXPECT_NE(none.status().message().find("no tag arrived from server"), std::string::npos);
}

TEST(Channel, notesGoToTheEventsInOrder) {
  Two two;
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(two.mine->send(MessageKind::note, 0, std::to_string(i), kPatience).ok());
  }
  ASSERT_TRUE(two.server.events.waitNotes(50));
  for (int i = 0; i < 50; ++i) EXPECT_EQ(two.server.events.notes()[i], std::to_string(i));
  EXPECT_FALSE(two.theirs->unread());
}

TEST(Channel, answersCallsBothWays) {
  Two two;
  auto answer = two.mine->call(7, "question", kPatience);
  ASSERT_TRUE(answer.ok()) << answer.status().toString();
  EXPECT_EQ(*answer, "question/7");
  EXPECT_EQ(*two.theirs->call(8, "", kPatience), "/8");
  auto failed = two.mine->call(404, "", kPatience);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.status().code(), Code::notFound);
  EXPECT_EQ(failed.status().message(), "no method 404");
  EXPECT_EQ(two.mine->call(999, "", kPatience).status().code(), Code::outOfRange);
}

TEST(Channel, callsAreAnsweredLaterInAnyOrderFromAnyThread) {
  Two two;
  std::jthread first([&] { EXPECT_EQ(*two.mine->call(kLater, "one", kPatience), "one/1000"); });
  std::jthread second([&] { EXPECT_EQ(*two.mine->call(kLater, "two", kPatience), "two/1000"); });
  EXPECT_EQ(*two.mine->call(8, "", kPatience), "/8") << "is not kept waiting";
  EXPECT_TRUE(two.server.events.answerLater(2));
}

TEST(Channel, anAnswerThatComesAfterTheEndIsDropped) {
  Two two;
  two.mine->ask(kLater, "", [](const auto&) {});
  two.mine->ask(kLater, "", [](const auto&) {});
  two.mine->close(Status());
  two.server.events.waitLeft();
  EXPECT_TRUE(two.server.events.answerLater(1));
}

TEST(Channel, carriesTheLargestMessageAndRefusesALargerOne) {
  Two two;
  std::string large(kLargestMessage, 'L');
  std::jthread sender([&] {
    EXPECT_TRUE(two.mine->send(MessageKind::structure, 3, large, kPatience).ok());
    EXPECT_TRUE(two.mine->send(MessageKind::note, 0, large, kPatience).ok());
  });
  auto got = two.theirs->receive(MessageKind::structure, kPatience);
  ASSERT_TRUE(got.ok()) << got.status().toString();
  EXPECT_TRUE(got->payload == large);
  EXPECT_EQ(got->flags, 3);
  sender.join();
  ASSERT_TRUE(two.server.events.waitNotes(1));
  auto answer = two.mine->call(1, large.substr(2), kPatience);
  EXPECT_TRUE(answer.ok()) << answer.status().toString();
  large += 'x';
  EXPECT_EQ(two.mine->send(MessageKind::tag, 0, large, kPatience).code(), Code::invalidArgument);
  EXPECT_EQ(two.mine->call(1, large, kPatience).status().code(), Code::invalidArgument);
}

TEST(Channel, goodbyeDeliversWhatWasSentBefore) {
  Two two;
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(sendTag(*two.mine, std::to_string(i)).ok());
  two.mine->close(error(Code::cancelled, "enough"));
  Status left = two.server.events.waitLeft();
  EXPECT_EQ(left.code(), Code::disconnected);
  EXPECT_NE(left.message().find("client"), std::string::npos);
  EXPECT_NE(left.message().find("enough"), std::string::npos) << left.toString();
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(receiveText(*two.theirs, MessageKind::tag), std::to_string(i));
  }
  EXPECT_EQ(two.theirs->receive(MessageKind::tag, kPatience).status().code(), Code::disconnected);
  EXPECT_EQ(two.mine->status().message(), "enough");
  EXPECT_EQ(two.client.events.waitLeft().message(), "enough");
  EXPECT_TRUE(two.theirs->lease()->expired());
  EXPECT_TRUE(two.mine->lease()->expired());
  EXPECT_EQ(sendTag(*two.mine, "late").message(), "enough");
  EXPECT_EQ(sendTag(*two.theirs, "late").code(), Code::disconnected);
  EXPECT_EQ(two.theirs->call(1, "", kPatience).status().code(), Code::disconnected);
}

TEST(Channel, destroyingAControlIsAGoodbyeToo) {
  Two two;
  ASSERT_TRUE(sendTag(*two.mine, "last words").ok());
  two.client.control.reset();
  EXPECT_EQ(two.server.events.waitLeft().code(), Code::disconnected);
  EXPECT_EQ(receiveText(*two.theirs, MessageKind::tag), "last words");
  EXPECT_FALSE(two.mine->status().ok());
  EXPECT_FALSE(sendTag(*two.mine, "late").ok());
  two.mine->close(Status());
  EXPECT_EQ(two.client.events.leftCount(), 1u);
}

TEST(Channel, theEndWakesEverybodyWhoWaits) {
  Two two;
  std::vector<std::jthread> waiters;
  for (auto kind : {MessageKind::tag, MessageKind::integer, MessageKind::structure}) {
    waiters.emplace_back([&two, kind] {
      EXPECT_EQ(two.theirs->receive(kind, kPatience).status().code(), Code::disconnected);
    });
    waiters.emplace_back(
        [&two, kind] { EXPECT_EQ(two.mine->receive(kind, kPatience).status().message(), "over"); });
  }
  two.mine->close(error(Code::cancelled, "over"));
}

TEST(Channel, aQuestionIsAnsweredOnceWithoutWaiting) {
  Two two;
  std::promise<Result<std::string>> answered;
  two.mine->ask(7, "question", [&](Result<std::string> answer) { answered.set_value(answer); });
  EXPECT_EQ(*answered.get_future().get(), "question/7");
  std::promise<Result<std::string>> refused;
  two.mine->ask(404, "", [&](Result<std::string> answer) { refused.set_value(answer); });
  EXPECT_EQ(refused.get_future().get().status().code(), Code::notFound);
  EXPECT_EQ(*two.mine->call(8, "", kPatience), "/8") << "calls go on beside it";
}

TEST(Channel, aQuestionWithoutAnAnswerEndsWithTheChannel) {
  TestPeer server("server");
  RawPeer peer(server.listen());
  ASSERT_TRUE(peer.join("raw"));
  auto channel = server.events.waitJoined();
  std::vector<Code> ends;
  auto remember = [&](const Result<std::string>& answer) {
    ends.push_back(answer.status().code());
  };
  channel->ask(1, "", remember);
  channel->close(error(Code::disconnected, "enough"));
  EXPECT_EQ(ends, std::vector<Code>{Code::disconnected});
  channel->ask(1, "", remember);
  EXPECT_EQ(ends, std::vector<Code>(2, Code::disconnected)) << "at once, and each once";
}

TEST(Channel, leftIsCalledOncePerSide) {
  Two two;
  two.mine->close(Status());
  two.theirs->close(Status());
  two.mine->close(Status());
  two.server.events.waitLeft();
  two.client.events.waitLeft();
  two.server.control.reset();
  two.client.control.reset();
  EXPECT_EQ(two.server.events.leftCount(), 1u);
  EXPECT_EQ(two.client.events.leftCount(), 1u);
}

TEST(Channel, aPeerThatDiesWithoutAWordIsMissed) {
  TestPeer server("server");
  RawPeer peer(server.listen());
  ASSERT_TRUE(peer.join("raw"));
  auto channel = server.events.waitJoined();
  std::jthread waiter([&] {
    EXPECT_EQ(channel->receive(MessageKind::tag, kPatience).status().code(), Code::disconnected);
  });
  std::jthread asker(
      [&] { EXPECT_EQ(channel->call(1, "", kPatience).status().code(), Code::disconnected); });
  ASSERT_EQ(peer.hearWords().type, FrameType::call);
  peer.hangUp();
  Status left = server.events.waitLeft();
  EXPECT_EQ(left.code(), Code::disconnected);
  EXPECT_NE(left.message().find("raw (127.0.0.1:"), std::string::npos);
  EXPECT_NE(left.message().find("went away without a goodbye"), std::string::npos);
}

ControlOptions beating(int heartbeatMs, int leaseMs) {
  ControlOptions options;
  options.name = "server";
  options.heartbeat = std::chrono::milliseconds(heartbeatMs);
  options.lease = std::chrono::milliseconds(leaseMs);
  return options;
}

TEST(Channel, aPeerThatFallsSilentIsGivenUpAfterTheLease) {
  TestPeer server(beating(50, 400));
  RawPeer peer(server.listen());
  ASSERT_TRUE(peer.join("mute"));
  Status left = server.events.waitLeft();
  EXPECT_EQ(left.code(), Code::disconnected);
  EXPECT_NE(left.message().find("heard nothing from mute"), std::string::npos) << left.toString();
  EXPECT_NE(left.message().find("for 0.4 s"), std::string::npos) << left.toString();
  EXPECT_TRUE(server.events.waitJoined()->lease()->expired());
}

TEST(Channel, heartbeatsKeepAnIdleChannelAlive) {
  TestPeer server(beating(20, 4000));
  RawPeer peer(server.listen());
  ASSERT_TRUE(peer.join("raw"));
  // Answers heartbeats for longer than the lease, and does nothing else.
  for (int i = 0; i < 220; ++i) {
    auto heard = peer.hear();
    ASSERT_EQ(heard.type, FrameType::ping);
    ASSERT_TRUE(peer.say(FrameType::pong, heard.payload).ok());
  }
  EXPECT_TRUE(server.events.waitJoined()->status().ok());
  ASSERT_TRUE(peer.say(FrameType::ping, "12345678").ok());
  auto heard = peer.hear();
  while (heard.type == FrameType::ping) heard = peer.hear();
  EXPECT_EQ(heard.type, FrameType::pong);
  EXPECT_EQ(heard.payload, "12345678");
}

TEST(Channel, aProtocolErrorEndsItAndNoOther) {
  TestPeer server("server");
  TestPeer client("client");
  std::string listener = server.listen();
  auto good = client.connect(listener);
  ASSERT_TRUE(good.ok());
  auto huge = sealedHeader(FrameType::message, 0, 0, 0xfffffff0u, 0);
  auto badKind = frameHeader(FrameType::message, 200, 0, {});
  std::vector<std::string> lies = {
      std::string(huge.data(), huge.size()),  std::string(badKind.data(), badKind.size()),
      frameBytes(static_cast<FrameType>(77)), frameBytes(FrameType::hello, "again"),
      frameBytes(FrameType::ping, "short"),   frameBytes(FrameType::pong, ""),
      frameBytes(FrameType::call, "x"),       frameBytes(FrameType::answer, "x"),
      frameBytes(FrameType::ringReady),       frameBytes(FrameType::ringSwitch),
      frameBytes(FrameType::drain),
  };
  for (size_t i = 0; i < lies.size(); ++i) {
    RawPeer peer(listener);
    ASSERT_TRUE(peer.join("liar"));
    ASSERT_TRUE(peer.say(std::string_view(lies[i])).ok());
    Status left = server.events.waitLeft(i + 1);
    EXPECT_NE(left.message().find("liar"), std::string::npos) << left.toString();
    EXPECT_NE(left.message().find("broke the protocol"), std::string::npos) << left.toString();
    EXPECT_EQ(peer.hearWords().type, FrameType::bye);
    EXPECT_TRUE(peer.hangsUp());
  }
  EXPECT_TRUE((*good)->call(1, "", kPatience).ok());
}

TEST(Channel, aMalformedGoodbyeIsStillAGoodbye) {
  TestPeer server("server");
  RawPeer peer(server.listen());
  ASSERT_TRUE(peer.join("raw"));
  peer.say(FrameType::bye, "x");
  EXPECT_NE(server.events.waitLeft().message().find("closed the connection"), std::string::npos);
}

TEST(Channel, withoutARingTheSocketCarriesEverything) {
  TestPeer server("server");
  RawPeer peer(server.listen());
  ASSERT_TRUE(peer.join("raw"));
  auto channel = server.events.waitJoined();
  ASSERT_TRUE(channel->send(MessageKind::structure, 9, "bytes", kPatience).ok());
  auto heard = peer.hearWords();
  EXPECT_EQ(heard.type, FrameType::message);
  EXPECT_EQ(heard.payload, "bytes");
}

TEST(Channel, callsThatNobodyAnswersEndAtTheirDeadline) {
  TestPeer server("server");
  RawPeer peer(server.listen());
  ASSERT_TRUE(peer.join("raw"));
  auto channel = server.events.waitJoined();
  auto answer = channel->call(1, "", std::chrono::milliseconds(30));
  EXPECT_EQ(answer.status().code(), Code::deadlineExceeded);
  auto late = peer.hearWords();
  ASSERT_EQ(late.type, FrameType::call);
  peer.say(FrameType::answer, late.payload.substr(0, 8) + std::string(1, '\0') + "late");
  peer.say(FrameType::message, "still alive");
  EXPECT_EQ(receiveText(*channel, MessageKind::tag), "still alive");
}

TEST(Channel, aPeerThatDoesNotReadHoldsSendersUpToTheirDeadline) {
  TestPeer server("server");
  RawPeer peer(server.listen());
  ASSERT_TRUE(peer.join("raw"));
  auto channel = server.events.waitJoined();
  std::string block(kLargestMessage, 'b');
  Status status;
  for (int i = 0; i < 20 && status.ok(); ++i) {
    status = channel->send(MessageKind::structure, 0, block, std::chrono::milliseconds(50));
  }
  EXPECT_EQ(status.code(), Code::deadlineExceeded) << status.toString();
  std::jthread sender(
      [&] { EXPECT_TRUE(channel->send(MessageKind::structure, 0, "last", kPatience).ok()); });
  for (;;) {
    auto heard = peer.hearWords();
    ASSERT_EQ(heard.type, FrameType::message);
    if (heard.payload == "last") break;
    ASSERT_EQ(heard.payload.size(), block.size());
  }
}

}  // namespace
}  // namespace hmc::control
