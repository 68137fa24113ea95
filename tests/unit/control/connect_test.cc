#include <gtest/gtest.h>

#include <barrier>
#include <filesystem>
#include <set>
#include <thread>

#include "raw_peer.h"
#include "test_peer.h"

namespace hmc::control {
namespace {

using namespace test;

TEST(Connect, whereNobodyListensIsAnErrorAtOnce) {
  TestPeer server("server");
  TestPeer client("client");
  std::string listener = server.listen();
  ASSERT_TRUE(server.control->closeListener(listener).ok());
  auto channel = client.connect(listener);
  ASSERT_FALSE(channel.ok());
  EXPECT_EQ(channel.status().code(), Code::disconnected);
  EXPECT_EQ(channel.status().message(), "nobody listens at " + listener);
  EXPECT_EQ(client.connect("tcp://127.0.0.1:0").status().code(), Code::invalidArgument);
  EXPECT_EQ(client.connect("nonsense").status().code(), Code::invalidArgument);
  EXPECT_EQ(client.connect("unix:///nonexistent/x").status().code(), Code::disconnected);
}

TEST(Connect, aHostNameIsResolved) {
  TestPeer server("server");
  TestPeer client("client");
  std::string listener = server.listen();
  std::string port = listener.substr(listener.rfind(':'));
  auto channel = client.connect("tcp://localhost" + port);
  EXPECT_TRUE(channel.ok()) << channel.status().toString();
  EXPECT_EQ(client.connect("tcp://no-such-host.invalid:1").status().code(), Code::notFound);
}

TEST(Connect, bothEndsOfAChannelHaveTheSameCredentialsAndNoOtherChannelHasThem) {
  std::set<std::string> seen;
  for (const char* secret : {"", "hush"}) {
    TestPeer server("server", secret);
    const std::string address = server.listen();
    for (int i = 0; i < 2; ++i) {
      TestPeer client("client", secret);
      auto mine = client.connect(address);
      ASSERT_TRUE(mine.ok()) << mine.status().toString();
      EXPECT_EQ((*mine)->credentials().size(), 32u);
      EXPECT_EQ((*mine)->credentials(), server.events.waitJoined(i + 1)->credentials());
      EXPECT_TRUE(seen.insert((*mine)->credentials()).second);
    }
  }
}

TEST(Connect, dialledAgainAnswersTheSameChannelAndTellsThePeer) {
  TestPeer server("server");
  TestPeer client("client");
  std::string listener = server.listen();
  auto first = client.connect(listener, "first");
  auto second = client.connect(listener, "second");
  ASSERT_TRUE(first.ok() && second.ok()) << second.status().toString();
  EXPECT_EQ(*first, *second);
  ASSERT_EQ(server.events.again().size(), 1u);
  EXPECT_EQ(server.events.again()[0].first, server.events.waitJoined());
  EXPECT_EQ(server.events.again()[0].second, "second");
  EXPECT_EQ(server.events.joinedCount(), 1u);
  EXPECT_EQ(client.events.joinedCount(), 1u);
}

// Without a secret anybody may say that it is that peer. Only the peer itself has the channel.
TEST(Connect, aStrangerWithThePeersIdChangesNothing) {
  TestPeer server("server");
  TestPeer client("client");
  std::string listener = server.listen();
  auto channel = client.connect(listener, "the client's");
  ASSERT_TRUE(channel.ok());
  for (bool again : {true, false}) {
    RawPeer stranger(listener);
    ASSERT_TRUE(stranger.greet());
    EXPECT_EQ(stranger.introduce("stranger", "", client.control->id(), again).type,
              FrameType::yield);
  }
  EXPECT_TRUE(server.events.again().empty());
  EXPECT_TRUE((*channel)->status().ok());
}

TEST(Connect, inTheOtherDirectionAnswersTheSameChannelToo) {
  TestPeer a("a");
  TestPeer b("b");
  auto forth = a.connect(b.listen());
  auto back = b.connect(a.listen());
  ASSERT_TRUE(forth.ok() && back.ok()) << back.status().toString();
  EXPECT_EQ(*back, b.events.waitJoined());
  EXPECT_FALSE((*back)->initiator());
  ASSERT_TRUE(sendTag(**back, "hello").ok());
  EXPECT_EQ(receiveText(**forth, MessageKind::tag), "hello");
}

TEST(Connect, aPeerMayRefuseTheSecondDial) {
  TestPeer server("server");
  TestPeer client("client");
  std::string listener = server.listen();
  auto first = client.connect(listener);
  ASSERT_TRUE(first.ok());
  server.events.refuseWith(error(Code::invalidArgument, "not like this"));
  auto second = client.connect(listener);
  EXPECT_EQ(second.status().code(), Code::invalidArgument);
  EXPECT_TRUE((*first)->call(1, "", kPatience).ok());
}

TEST(Connect, afterCloseMakesANewChannel) {
  TestPeer server("server");
  TestPeer client("client");
  std::string listener = server.listen();
  for (size_t i = 0; i < 50; ++i) {
    auto channel = client.connect(listener);
    ASSERT_TRUE(channel.ok()) << i << ": " << channel.status().toString();
    auto theirs = server.events.waitJoined(i + 1);
    ASSERT_TRUE(theirs);
    ASSERT_TRUE(sendTag(**channel, std::to_string(i)).ok());
    // Either side may be the one that closes.
    (i % 2 ? *channel : theirs)->close(Status());
    EXPECT_FALSE((i % 2 ? *channel : theirs)->status().ok());
    if (i % 2) {
      EXPECT_EQ(receiveText(*theirs, MessageKind::tag), std::to_string(i));
    }
  }
}

TEST(Connect, aRestartedPeerIsSomebodyElse) {
  TestPeer client("client");
  auto server = std::make_unique<TestPeer>("server");
  std::string listener = server->listen();
  auto old = client.connect(listener);
  ASSERT_TRUE(old.ok());
  server = nullptr;
  ASSERT_EQ(client.events.waitLeft().code(), Code::disconnected);
  server = std::make_unique<TestPeer>("server");
  ASSERT_EQ(server->listen(listener), listener);
  auto fresh = client.connect(listener);
  ASSERT_TRUE(fresh.ok()) << fresh.status().toString();
  EXPECT_NE((*fresh)->peer().id, (*old)->peer().id);
  EXPECT_FALSE((*old)->status().ok());
  EXPECT_TRUE((*fresh)->call(1, "", kPatience).ok());
}

TEST(Connect, atTheSameTimeFromBothSidesMakesOneChannel) {
  for (int round = 0; round < 100; ++round) {
    TestPeer a("a");
    TestPeer b("b");
    std::string listenerA = a.listen();
    std::string listenerB = b.listen();
    Result<std::shared_ptr<Channel>> fromA = Status(Code::failed, "not yet");
    Result<std::shared_ptr<Channel>> fromB = Status(Code::failed, "not yet");
    std::barrier start(2);
    std::jthread dialA([&] {
      start.arrive_and_wait();
      fromA = a.connect(listenerB, "from a");
    });
    start.arrive_and_wait();
    fromB = b.connect(listenerA, "from b");
    dialA.join();
    ASSERT_TRUE(fromA.ok()) << fromA.status().toString();
    ASSERT_TRUE(fromB.ok()) << fromB.status().toString();
    EXPECT_EQ(a.events.joinedCount(), 1u);
    EXPECT_EQ(b.events.joinedCount(), 1u);
    EXPECT_NE((*fromA)->initiator(), (*fromB)->initiator());
    ASSERT_TRUE(sendTag(**fromA, "x").ok());
    ASSERT_EQ(receiveText(**fromB, MessageKind::tag), "x");
    EXPECT_EQ(a.events.leftCount() + b.events.leftCount(), 0u);
  }
}

TEST(Connect, fromManyThreadsMakesOneChannel) {
  TestPeer server("server");
  TestPeer client("client");
  std::string listener = server.listen();
  std::vector<std::shared_ptr<Channel>> channels(16);
  {
    std::vector<std::jthread> threads;
    for (auto& slot : channels) {
      threads.emplace_back([&client, &listener, &slot] {
        auto channel = client.connect(listener);
        EXPECT_TRUE(channel.ok()) << channel.status().toString();
        if (channel.ok()) slot = *channel;
      });
    }
  }
  for (const auto& channel : channels) EXPECT_EQ(channel, channels[0]);
  EXPECT_EQ(server.events.joinedCount(), 1u);
  EXPECT_EQ(server.events.again().size(), 15u);
}

TEST(Connect, thirtyTwoPeersToOneListener) {
  TestPeer server("server");
  std::string listener = server.listen();
  std::vector<std::unique_ptr<TestPeer>> clients;
  std::vector<std::shared_ptr<Channel>> channels;
  for (int i = 0; i < 32; ++i) {
    clients.push_back(std::make_unique<TestPeer>("client" + std::to_string(i)));
    auto channel = clients.back()->connect(listener);
    ASSERT_TRUE(channel.ok()) << channel.status().toString();
    channels.push_back(*channel);
  }
  ASSERT_TRUE(server.events.waitJoined(32));
  for (size_t i = 0; i < 32; ++i) {
    auto theirs = server.events.waitJoined(i + 1);
    ASSERT_TRUE(sendTag(*theirs, theirs->peer().name).ok());
  }
  for (size_t i = 0; i < 32; ++i) {
    EXPECT_EQ(receiveText(*channels[i], MessageKind::tag), "client" + std::to_string(i));
  }
}

TEST(Connect, toOnesOwnListenerMakesTwoEnds) {
  TestPeer peer("self");
  std::string listener = peer.listen();
  auto dialled = peer.connect(listener, "mine");
  ASSERT_TRUE(dialled.ok()) << dialled.status().toString();
  ASSERT_TRUE(peer.events.waitJoined(2));
  auto accepted = peer.events.waitJoined(1);
  EXPECT_TRUE((*dialled)->initiator());
  EXPECT_FALSE(accepted->initiator());
  EXPECT_NE(accepted, *dialled);
  EXPECT_EQ(accepted->peer().id, peer.control->id());
  ASSERT_TRUE(sendTag(**dialled, "to myself").ok());
  EXPECT_EQ(receiveText(*accepted, MessageKind::tag), "to myself");
  ASSERT_TRUE(sendTag(*accepted, "and back").ok());
  EXPECT_EQ(receiveText(**dialled, MessageKind::tag), "and back");
  EXPECT_TRUE((*dialled)->call(1, "", kPatience).ok());

  auto second = peer.connect(listener);
  ASSERT_TRUE(second.ok());
  EXPECT_NE(*second, *dialled);
  (*dialled)->close(Status());
  peer.events.waitLeft(2);
  EXPECT_TRUE((*second)->call(1, "", kPatience).ok());
}

size_t entries(const char* folder) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

TEST(Connect, twoHundredTimesLeaksNoDescriptorAndNoThread) {
  size_t fds = entries("/proc/self/fd");
  size_t threads = entries("/proc/self/task");
  {
    TestPeer server("server");
    TestPeer client("client");
    std::string listener = server.listen();
    for (size_t i = 0; i < 200; ++i) {
      auto channel = client.connect(listener);
      ASSERT_TRUE(channel.ok()) << channel.status().toString();
      (*channel)->close(Status());
      server.events.waitLeft(i + 1);
    }
    for (int i = 0; i < 20; ++i) {
      TestPeer passing("passing");
      ASSERT_TRUE(passing.connect(listener).ok());
      EXPECT_FALSE(passing.connect("tcp://127.0.0.1:1").ok());
    }
    server.events.waitLeft(220);
  }
  EXPECT_EQ(entries("/proc/self/fd"), fds);
  // A joined thread may still be in /proc for a moment.
  Deadline deadline = kPatience;
  while (entries("/proc/self/task") > threads && !deadline.passed()) std::this_thread::yield();
  EXPECT_EQ(entries("/proc/self/task"), threads);
}

}  // namespace
}  // namespace hmc::control
