#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "unit/node/node_pair.h"

// What a Node counts, and what it tells a trace.

namespace hmc {
namespace {

using testing::HasSubstr;
using Step = TraceEvent::Step;

constexpr size_t kCountedSize = size_t{2} << 20;

TransportCounts over(const Node& node, const std::string& transport) {
  for (const TransportCounts& one : node.counters()) {
    if (one.transport == transport) return one;
  }
  ADD_FAILURE() << "no " << transport;
  return {};
}

void expectCounts(const std::string& transport, size_t size) {
  NodePair nodes({transport});
  auto target = must(nodes.a.allocate("target", kCountedSize));
  auto local = must(nodes.b.allocate("local", kCountedSize));
  auto remote = must(nodes.toA.open("target"));
  EXPECT_EQ(over(nodes.b, transport).operations, 0U);
  ASSERT_TRUE(remote.put(local, 0, 0, size).ok());
  ASSERT_TRUE(remote.get(local, 0, 0, size).ok());
  EXPECT_EQ(over(nodes.b, transport).operations, 2U);
  EXPECT_EQ(over(nodes.b, transport).bytes, 2 * size);
  ASSERT_TRUE(must(remote.startPut(local, {{0, 0, 8}, {8, 8, 16}})).wait().ok());
  EXPECT_EQ(over(nodes.b, transport).operations, 4U);
  EXPECT_EQ(over(nodes.b, transport).bytes, 2 * size + 24);
  EXPECT_EQ(over(nodes.a, transport).operations, 0U) << "the target takes no part";
}

TEST(NodeCounters, countPutsAndGetsOfASocket) {
  expectCounts("tcp", 4096);
}

TEST(NodeCounters, countCopiesIntoMappedMemory) {
  expectCounts("ipc", 8);
}

class NodeTrace : public testing::Test {
 protected:
  struct Line {
    Step step;
    uint64_t transfer;
    std::string transport;
    std::string peer;
    bool put;
    uint64_t bytes;
    Code code;
  };
  static void hear(void* context, const TraceEvent& event) {
    auto& self = *static_cast<NodeTrace*>(context);
    std::lock_guard lock(self.mutex_);
    self.lines_.push_back({event.step, event.transfer, event.transport, event.peer, event.put,
                           event.bytes, event.code});
  }
  std::vector<Line> lines() {
    std::lock_guard lock(mutex_);
    return lines_;
  }
  static void putOnce(const NodeOptions& options) {
    Node a = must(Node::create(named("a", options.transports)));
    Node b = must(Node::create(options));
    auto target = must(a.allocate("target", kCountedSize));
    auto local = must(b.allocate("local", kCountedSize));
    Peer peer = must(b.connect(must(a.listen("tcp://127.0.0.1:0"))));
    auto remote = must(peer.open("target"));
    ASSERT_TRUE(remote.put(local, 0, 0, 100).ok());
    ASSERT_TRUE(must(remote.startGet(local, {{0, 0, 30}, {30, 30, 3}})).wait().ok());
  }
  void expectSteps(const std::string& transport) {
    NodeOptions options = named("b", {transport});
    options.trace = {hear, this};
    putOnce(options);
    const auto all = lines();
    ASSERT_EQ(all.size(), 6U);
    for (size_t i = 0; i < 6; ++i) {
      EXPECT_EQ(all[i].step, i % 3 == 0 ? Step::start : i % 3 == 1 ? Step::post : Step::end);
      EXPECT_EQ(all[i].transport, transport);
      EXPECT_THAT(all[i].peer, HasSubstr("a"));
      EXPECT_EQ(all[i].put, i < 3);
      EXPECT_EQ(all[i].bytes, i < 3 ? 100U : 33U);
      EXPECT_EQ(all[i].transfer, all[i < 3 ? 0 : 3].transfer);
      EXPECT_EQ(all[i].code, Code::ok);
    }
    EXPECT_NE(all[0].transfer, all[3].transfer);
  }

 private:
  std::mutex mutex_;
  std::vector<Line> lines_;
};

TEST_F(NodeTrace, hearsOfStartPostAndEnd) {
  expectSteps("tcp");
}

TEST_F(NodeTrace, hearsOfCopiesIntoMappedMemory) {
  expectSteps("ipc");
}

TEST_F(NodeTrace, hearsHowATransferFailed) {
  NodeOptions options = named("b", {"tcp"});
  options.trace = {hear, this};
  Node b = must(Node::create(options));
  auto local = must(b.allocate("local", kCountedSize));
  auto a = std::make_unique<Node>(must(Node::create(named("a", {"tcp"}))));
  auto target = std::make_unique<LocalRegion>(must(a->allocate("target", kCountedSize)));
  Peer peer = must(b.connect(must(a->listen("tcp://127.0.0.1:0"))));
  auto remote = must(peer.open("target"));
  a->close();
  EXPECT_FALSE(remote.put(local, 0, 0, kCountedSize).ok());
  ASSERT_FALSE(lines().empty());
  EXPECT_EQ(lines().back().step, Step::end);
  EXPECT_EQ(lines().back().code, Code::disconnected);
}

TEST_F(NodeTrace, isPrintedWhenTheEnvironmentAsksForIt) {
  setenv("HMC_TRACE", "stderr", 1);
  testing::internal::CaptureStderr();
  putOnce(named("b", {"tcp"}));
  const std::string text = testing::internal::GetCapturedStderr();
  unsetenv("HMC_TRACE");
  EXPECT_THAT(text, HasSubstr("hmc trace: start put 1 100 bytes over tcp with a"));
  EXPECT_THAT(text, HasSubstr("hmc trace: post get 2 33 bytes over tcp with a"));
  EXPECT_THAT(text, HasSubstr(": ok\n"));
}

}  // namespace
}  // namespace hmc
