// Peer::call() and Node::nextCall().
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <future>
#include <thread>
#include <vector>

#include "unit/node/node_pair.h"

namespace hmc {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// What b's call ends with, while this thread serves it.
std::future<Result<std::string>> callA(NodePair& nodes, const std::string& name,
                                       const std::string& bytes, Timeout timeout = 60s) {
  return std::async(std::launch::async, [&nodes, name, bytes, timeout] {
    return nodes.toA.call(name, bytes, timeout);
  });
}

TEST(NodeCall, isAnsweredByThePeersUser) {
  NodePair nodes;
  auto target = must(nodes.a.allocate("target", 8));
  auto local = must(nodes.b.allocate("", 8));
  fill(local, 1);
  ASSERT_TRUE(must(nodes.toA.open("target")).put(local, 0, 0, 8).ok());
  auto answer = callA(nodes, "sum", std::string("with a \0 in it", 13));
  Call call = must(nodes.a.nextCall(60s));
  EXPECT_EQ(call.from().name(), "b");
  EXPECT_EQ(call.name(), "sum");
  EXPECT_EQ(call.bytes(), std::string("with a \0 in it", 13));
  EXPECT_EQ(text(target, 0, 8), text(local, 0, 8)) << "puts before the call";
  EXPECT_TRUE(call.answer(std::string("\0\1", 2)).ok());
  EXPECT_EQ(call.answer("again").code(), Code::alreadyExists);
  EXPECT_EQ(must(answer.get()), std::string("\0\1", 2));
}

TEST(NodeCall, worksInBothDirectionsAtOnceAndOutOfOrder) {
  NodePair nodes;
  auto first = callA(nodes, "first", "");
  Call kept = must(nodes.a.nextCall(60s));
  auto second = callA(nodes, "second", "");
  auto back = std::async(std::launch::async, [&] { return nodes.toB.call("back", "", 60s); });
  EXPECT_TRUE(must(nodes.b.nextCall(60s)).answer("b").ok());
  EXPECT_TRUE(must(nodes.a.nextCall(60s)).answer("2").ok());
  EXPECT_EQ(must(second.get()), "2");
  EXPECT_EQ(must(back.get()), "b");
  EXPECT_TRUE(kept.answer("1").ok());
  EXPECT_EQ(must(first.get()), "1");
}

TEST(NodeCall, refusedOrDroppedIsAnErrorOfTheCaller) {
  NodePair nodes;
  auto refused = callA(nodes, "unknown", "");
  EXPECT_TRUE(must(nodes.a.nextCall(60s)).refuse("there is no \"unknown\" here").ok());
  const Status why = refused.get().status();
  EXPECT_EQ(why.code(), Code::failed);
  EXPECT_THAT(why.message(), HasSubstr("the call \"unknown\" to a"));
  EXPECT_THAT(why.message(), HasSubstr("there is no \"unknown\" here"));
  auto dropped = callA(nodes, "lost", "");
  must(nodes.a.nextCall(60s));
  EXPECT_THAT(dropped.get().status().message(), HasSubstr("dropped without an answer"));
}

TEST(NodeCall, endsWithItsTimeoutOrWithThePeer) {
  NodePair nodes;
  EXPECT_EQ(nodes.toA.call("slow", "", 1ms).status().code(), Code::deadlineExceeded);
  Call late = must(nodes.a.nextCall(60s));
  EXPECT_TRUE(late.answer("nobody waits for it").ok());
  auto pending = callA(nodes, "pending", "");
  Call never = must(nodes.a.nextCall(60s));
  nodes.a.close();
  EXPECT_EQ(pending.get().status().code(), Code::disconnected);
  EXPECT_EQ(nodes.a.nextCall(60s).status().code(), Code::disconnected);
  never.answer("to nobody");  // does no harm
}

TEST(NodeCall, thoseThatNobodyAnswersAreBounded) {
  NodePair nodes;
  const std::string large(16 << 20, 'x');
  EXPECT_EQ(nodes.toA.call("", large + "y", 60s).status().code(), Code::invalidArgument);
  const std::string fits(15 << 20, 'x');
  std::vector<std::future<Result<std::string>>> calls;
  for (int i = 0; i < 6; ++i) calls.push_back(callA(nodes, "flood", fits));
  std::vector<Call> unanswered;
  for (int i = 0; i < 4; ++i) unanswered.push_back(must(nodes.a.nextCall(60s)));
  auto done = [](auto& call) { return call.wait_for(0s) == std::future_status::ready; };
  while (std::count_if(calls.begin(), calls.end(), done) < 2) std::this_thread::yield();
  unanswered.clear();
  int refused = 0;
  for (auto& call : calls) {
    const Status why = call.get().status();
    refused += why.code() == Code::exhausted;
    EXPECT_THAT(why.message(),
                testing::AnyOf(HasSubstr("wait for an answer"), HasSubstr("dropped")));
  }
  EXPECT_EQ(refused, 2);
  auto answer = callA(nodes, "again", fits);
  EXPECT_TRUE(must(nodes.a.nextCall(60s)).answer("there is room").ok());
  EXPECT_EQ(must(answer.get()), "there is room");
}

TEST(NodeCall, hasADescriptorForEventLoops) {
  NodePair nodes;
  pollfd one{must(nodes.a.callFd()), POLLIN, 0};
  EXPECT_EQ(poll(&one, 1, 0), 0);
  auto answer = callA(nodes, "x", "");
  EXPECT_EQ(poll(&one, 1, 60000), 1);
  EXPECT_TRUE(must(nodes.a.nextCall(0ms)).answer("").ok());
  EXPECT_EQ(poll(&one, 1, 0), 0);
  EXPECT_EQ(must(answer.get()), "");
}

}  // namespace
}  // namespace hmc
