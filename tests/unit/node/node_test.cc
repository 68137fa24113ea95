#include "hmc/node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "unit/node/node_pair.h"

namespace hmc {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// Everything that moves bytes, on each transport.
class NodeOver : public testing::TestWithParam<std::string> {
 protected:
  NodePair nodes_{{GetParam()}};
};

INSTANTIATE_TEST_SUITE_P(Transports, NodeOver, testing::Values("ipc", "tcp"),
                         [](const auto& one) { return one.param; });

TEST_P(NodeOver, putIsThereWhenItReturnsAndGetBringsItBack) {
  auto target = must(nodes_.a.allocate("target", 1 << 20));
  auto local = must(nodes_.b.allocate("local", 1 << 20));
  auto remote = must(nodes_.toA.open("target"));
  EXPECT_EQ(remote.transport(), GetParam());
  EXPECT_EQ(remote.size(), size_t{1} << 20);
  fill(local, 3);
  ASSERT_TRUE(remote.put(local, 0, 0, local.size()).ok());
  EXPECT_EQ(text(target, 0, target.size()), text(local, 0, local.size()));
  fill(target, 200);
  ASSERT_TRUE(remote.get(local, 5, 7, 1000).ok());
  EXPECT_EQ(text(local, 5, 1000), text(target, 7, 1000));
}

TEST_P(NodeOver, movesMemoryThatTheUserOwnsInBothDirections) {
  std::vector<char> mine(300000, 'm');
  std::vector<char> theirs(300000, 't');
  auto local = must(nodes_.b.registerMemory("mine", mine.data(), mine.size()));
  auto target = must(nodes_.a.registerMemory("theirs", theirs.data(), theirs.size()));
  auto fromB = must(nodes_.toA.open("theirs"));
  auto fromA = must(nodes_.toB.open("mine"));
  ASSERT_TRUE(fromB.put(local, 0, 0, 100000).ok());
  ASSERT_TRUE(fromA.put(target, 200000, 200000, 100000).ok());
  EXPECT_EQ(std::string(theirs.data(), 100000), std::string(100000, 'm'));
  EXPECT_EQ(std::string(mine.data() + 200000, 100000), std::string(100000, 't'));
}

TEST_P(NodeOver, aBatchLandsBlockByBlock) {
  auto target = must(nodes_.a.allocate("target", 1 << 20));
  auto local = must(nodes_.b.allocate("local", 1 << 20));
  auto remote = must(nodes_.toA.open("target"));
  fill(local, 1);
  std::vector<Block> blocks;
  for (size_t i = 0; i < 256; ++i) blocks.push_back({i * 4096, (255 - i) * 4096, 4096 - i});
  Ticket ticket = must(remote.startPut(local, blocks));
  ASSERT_TRUE(ticket.wait().ok());
  EXPECT_TRUE(ticket.done());
  for (const Block& block : blocks) {
    ASSERT_EQ(text(target, block.remoteOffset, block.size),
              text(local, block.localOffset, block.size));
  }
}

TEST_P(NodeOver, aBatchWithOneBadBlockMovesNothing) {
  auto target = must(nodes_.a.allocate("target", 1 << 20));
  auto local = must(nodes_.b.allocate("local", 1 << 20));
  auto remote = must(nodes_.toA.open("target"));
  fill(local, 1);
  const std::string before = text(target, 0, 64);
  for (const Block& bad :
       {Block{0, (1 << 20) - 8, 16}, Block{(1 << 20) - 8, 0, 16}, Block{0, SIZE_MAX - 4, 16}}) {
    auto ticket = remote.startPut(local, {Block{0, 0, 64}, bad});
    EXPECT_EQ(ticket.status().code(), Code::outOfRange) << ticket.status().toString();
  }
  EXPECT_EQ(text(target, 0, 64), before);
}

TEST_P(NodeOver, aStridedGetGathers) {
  auto target = must(nodes_.a.allocate("target", 64 * 1000));
  auto local = must(nodes_.b.allocate("local", 16 * 1000));
  auto remote = must(nodes_.toA.open("target"));
  fill(target, 1);
  Ticket ticket = must(remote.startGet(local, Strided{0, 16, 8, 64, 1000, 16}));
  ASSERT_TRUE(ticket.wait().ok());
  for (size_t i = 0; i < 1000; ++i)
    ASSERT_EQ(text(local, i * 16, 16), text(target, 8 + i * 64, 16)) << i;
}

TEST_P(NodeOver, aNotificationArrivesAfterTheDataOfATransferThatWasOnlyStarted) {
  constexpr size_t kSize = size_t{8} << 20;
  auto target = must(nodes_.a.allocate("target", kSize));
  auto local = must(nodes_.b.allocate("local", kSize));
  auto remote = must(nodes_.toA.open("target"));
  for (int round = 1; round <= 20; ++round) {
    std::memset(local.data(), round, kSize);
    must(remote.startPut(local, {{0, 0, kSize}}));
    ASSERT_TRUE(nodes_.toA.notify("ready").ok());
    Note note = must(nodes_.a.nextNote());
    EXPECT_EQ(note.bytes, "ready");
    EXPECT_EQ(note.from.name(), "b");
    const char* bytes = static_cast<const char*>(target.data());
    ASSERT_EQ(bytes[0], round);
    ASSERT_EQ(bytes[kSize - 1], round);
  }
}

TEST_P(NodeOver, aReadOnlyRegionRefusesPut) {
  auto target = must(nodes_.a.allocate("target", 4096, Device{}, Access::read));
  auto local = must(nodes_.b.allocate("local", 4096));
  auto remote = must(nodes_.toA.open("target"));
  EXPECT_EQ(remote.access(), Access::read);
  Status refused = remote.put(local, 0, 0, 8);
  EXPECT_EQ(refused.code(), Code::permissionDenied);
  EXPECT_THAT(refused.message(), HasSubstr("reading only"));
  EXPECT_TRUE(remote.get(local, 0, 0, 8).ok());
}

TEST_P(NodeOver, rangesAreCheckedOnBothSidesWithoutWrapping) {
  auto target = must(nodes_.a.allocate("target", 4096));
  auto local = must(nodes_.b.allocate("local", 8192));
  auto remote = must(nodes_.toA.open("target"));
  Status passed = remote.put(local, 0, 130, 4096);
  EXPECT_EQ(passed.code(), Code::outOfRange);
  EXPECT_THAT(passed.message(), HasSubstr("put of 4096 bytes at remote offset 130"));
  EXPECT_THAT(passed.message(), HasSubstr("would pass the end of 4096 bytes"));
  EXPECT_EQ(remote.put(local, 0, UINT64_MAX - 7, 16).code(), Code::outOfRange);
  EXPECT_EQ(remote.put(local, UINT64_MAX - 7, 0, 16).code(), Code::outOfRange);
  EXPECT_EQ(remote.startPut(local, {{0, 4090, 8}}).status().code(), Code::outOfRange);
  EXPECT_TRUE(remote.put(local, 8192, 4096, 0).ok());
}

TEST_P(NodeOver, aClosedPeerFailsOldHandlesAndAllOthersGoOn) {
  Node other = must(Node::create(named("c", {GetParam()})));
  Peer otherToA = must(other.connect(nodes_.listener));
  auto target = must(nodes_.a.allocate("target", 4096));
  auto local = must(nodes_.b.allocate("local", 4096));
  auto third = must(other.allocate("third", 4096));
  auto remote = must(nodes_.toA.open("target"));
  auto otherRemote = must(otherToA.open("target"));
  ASSERT_TRUE(remote.put(local, 0, 0, 8).ok());
  nodes_.toA.close();
  Status gone = remote.put(local, 0, 0, 8);
  EXPECT_EQ(gone.code(), Code::disconnected) << gone.toString();
  EXPECT_EQ(nodes_.toA.open("target").status().code(), Code::disconnected);
  EXPECT_TRUE(otherRemote.put(third, 0, 0, 8).ok());
  Peer again = must(nodes_.b.connect(nodes_.listener));
  EXPECT_TRUE(must(again.open("target")).put(local, 0, 0, 8).ok());
}

TEST_P(NodeOver, sixteenThreadsShareOneHandle) {
  constexpr size_t kPart = 64 << 10;
  auto target = must(nodes_.a.allocate("target", 16 * kPart));
  auto local = must(nodes_.b.allocate("local", 16 * kPart));
  auto remote = must(nodes_.toA.open("target"));
  fill(local, 9);
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      for (size_t at = 0; at < kPart; at += 1024) {
        if (!remote.put(local, t * kPart + at, t * kPart + at, 1024).ok()) ++failures;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(text(target, 0, target.size()), text(local, 0, local.size()));
}

TEST(Node, picksTheBestTransportAndExplainsTheOthers) {
  NodePair nodes;
  auto paths = nodes.toA.explain();
  ASSERT_EQ(paths.size(), 4U);
  EXPECT_EQ(paths[0].transport, "ipc");
  EXPECT_TRUE(paths[0].preferred);
  for (const auto& path : paths) {
    EXPECT_FALSE(path.reason.empty()) << path.transport;
    EXPECT_EQ(path.preferred, path.transport == "ipc") << path.transport;
    EXPECT_TRUE(path.usable || path.transport != "tcp") << path.reason;
  }
}

TEST(Node, aPeerWithoutTheTransportIsExplained) {
  Node a = must(Node::create(named("a", {"tcp"})));
  Node b = must(Node::create(named("b", {"ipc"})));
  auto target = must(a.allocate("target", 64));
  Peer peer = must(b.connect(must(a.listen("tcp://127.0.0.1:0"))));
  Status none = peer.open("target").status();
  EXPECT_EQ(none.code(), Code::unsupported);
  EXPECT_THAT(none.message(), HasSubstr("ipc: the peer does not have it"));
}

TEST(Node, anUnknownTransportIsAnErrorThatListsTheKnownOnes) {
  Status status = Node::create(named("a", {"carrier-pigeon"})).status();
  EXPECT_EQ(status.code(), Code::invalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("carrier-pigeon"));
  EXPECT_THAT(status.message(), HasSubstr("ipc"));
}

TEST(Node, anUnknownRegionIsAnErrorThatListsTheKnownOnes) {
  NodePair nodes;
  auto target = must(nodes.a.allocate("weights", 64));
  Status status = nodes.toA.open("wieghts").status();
  EXPECT_EQ(status.code(), Code::notFound);
  EXPECT_THAT(status.message(), HasSubstr("\"weights\""));
}

TEST(Node, aNameIsFreeAgainWhenItsRegionIsGone) {
  Node node = must(Node::create());
  {
    auto first = must(node.allocate("x", 64));
    EXPECT_EQ(node.allocate("x", 64).status().code(), Code::alreadyExists);
    EXPECT_EQ(text(first, 0, 4), std::string(4, '\0')) << "the refused one must not free the first";
  }
  EXPECT_TRUE(node.allocate("x", 64).ok());
}

TEST(Node, memoryOfAnotherNodeIsRefused) {
  NodePair nodes;
  auto target = must(nodes.a.allocate("target", 64));
  auto wrong = must(nodes.a.allocate("wrong", 64));
  auto remote = must(nodes.toA.open("target"));
  EXPECT_EQ(remote.put(wrong, 0, 0, 8).code(), Code::invalidArgument);
}

TEST(Node, needsTheSecretOfTheListener) {
  NodeOptions options = named("a");
  options.secret = "sesame";
  Node a = must(Node::create(options));
  std::string listener = must(a.listen("tcp://127.0.0.1:0"));
  Node stranger = must(Node::create(named("stranger")));
  EXPECT_EQ(stranger.connect(listener).status().code(), Code::permissionDenied);
  EXPECT_TRUE(a.peers().empty());
  options.name = "friend";
  Node guest = must(Node::create(options));
  EXPECT_TRUE(guest.connect(listener).ok());
}

TEST(Node, bothSidesMayDialAtOnceAndEndWithOnePeer) {
  for (int round = 0; round < 20; ++round) {
    Node a = must(Node::create(named("a")));
    Node b = must(Node::create(named("b")));
    std::string listenerA = must(a.listen("tcp://127.0.0.1:0"));
    std::string listenerB = must(b.listen("tcp://127.0.0.1:0"));
    std::thread other([&] { must(a.connect(listenerB)); });
    must(b.connect(listenerA));
    other.join();
    EXPECT_EQ(a.peers().size(), 1U);
    EXPECT_EQ(b.peers().size(), 1U);
  }
}

TEST(Node, waitsForAPeerByNameAndSaysWhoIsMissing) {
  Node node = must(Node::create());
  Status status = node.peer("ghost", 10ms).status();
  EXPECT_EQ(status.code(), Code::notFound);
  EXPECT_THAT(status.message(), HasSubstr("ghost"));
}

TEST(Node, handlesThatOutliveItAnswerWithAnError) {
  Node a = must(Node::create(named("a")));
  auto target = must(a.allocate("target", 4096));
  std::string listener = must(a.listen("tcp://127.0.0.1:0"));
  std::vector<LocalRegion> locals;
  std::vector<RemoteRegion> remotes;
  std::vector<Peer> peers;
  {
    Node b = must(Node::create(named("b")));
    peers.push_back(must(b.connect(listener)));
    locals.push_back(must(b.allocate("local", 4096)));
    remotes.push_back(must(peers[0].open("target")));
  }
  Status gone = remotes[0].put(locals[0], 0, 0, 8);
  EXPECT_EQ(gone.code(), Code::disconnected) << gone.toString();
  EXPECT_EQ(peers[0].open("target").status().code(), Code::disconnected);
  EXPECT_EQ(peers[0].notify("x").code(), Code::disconnected);
}

// Whatever it is that cannot be opened any more.
TEST(Node, memoryThatWouldPassTheEndOfTheAddressesIsNotRegistered) {
  Node node = must(Node::create(named("node")));
  char byte = 0;
  for (size_t size : {SIZE_MAX, SIZE_MAX - reinterpret_cast<uintptr_t>(&byte) + 1}) {
    const auto region = node.registerMemory("wraps", &byte, size, Device{});
    EXPECT_EQ(region.status().code(), Code::invalidArgument) << size;
    EXPECT_NE(region.status().message().find(std::to_string(size)), std::string::npos)
        << region.status().message();
  }
}

TEST(Node, tooFewDescriptorsAreAnErrorWhateverTheirNumber) {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  // Both beforehand: a sanitizer that meets a type for the first time needs descriptors of its own.
  must(Node::create());
  (void)errnoText(EMFILE);
  bool made = false;
  int failures = 0;
  for (rlim_t most = 3; most < 100 && !made; ++most) {
    rlimit few{most, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    auto node = Node::create();
    setrlimit(RLIMIT_NOFILE, &before);
    made = node.ok() && node->transports()[0].usable && node->transports()[1].usable;
    if (node.ok()) continue;
    ++failures;
    EXPECT_EQ(node.status().code(), Code::exhausted) << node.status().toString();
  }
  EXPECT_TRUE(made);
  EXPECT_GT(failures, 0);
}

TEST(Node, cancelledTransfersSayThatTheyWere) {
  NodePair nodes({"tcp"});
  constexpr size_t kSize = size_t{64} << 20;
  auto target = must(nodes.a.allocate("target", kSize));
  auto local = must(nodes.b.allocate("local", kSize));
  auto remote = must(nodes.toA.open("target"));
  Ticket ticket = must(remote.startPut(local, {{0, 0, kSize}}));
  Status outcome = ticket.cancel();
  EXPECT_TRUE(outcome.ok() || outcome.code() == Code::cancelled) << outcome.toString();
  EXPECT_TRUE(ticket.done());
  EXPECT_TRUE(remote.put(local, 0, 0, 4096).ok()) << "the link must survive";
}

}  // namespace
}  // namespace hmc
