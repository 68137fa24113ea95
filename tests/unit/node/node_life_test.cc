// How long memory, Nodes and processes last.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <latch>
#include <thread>
#include <vector>

#include "unit/node/node_pair.h"

namespace hmc {
namespace {

using namespace std::chrono_literals;

TEST(NodeLife, memoryWithoutANameIsOursAlone) {
  NodePair nodes;
  auto target = must(nodes.a.allocate("target", 64));
  auto first = must(nodes.b.allocate("", 64));
  auto second = must(nodes.b.allocate("", 64));
  fill(second, 5);
  EXPECT_TRUE(must(nodes.toA.open("target")).put(second, 0, 0, 64).ok());
  EXPECT_EQ(text(target, 0, 64), text(second, 0, 64));
  EXPECT_EQ(nodes.toB.open("").status().code(), Code::notFound);
}

TEST(NodeLife, theOwnerOfMemoryGoesWhenNoTransferUsesItAnyMore) {
  NodePair nodes({"tcp"});
  constexpr size_t kSize = size_t{8} << 20;
  auto target = must(nodes.a.allocate("target", kSize));
  auto remote = must(nodes.toA.open("target"));
  auto owner = std::make_shared<std::vector<char>>(kSize, 'o');
  std::weak_ptr<std::vector<char>> alive = owner;
  auto start = [&] {
    auto local = must(nodes.b.registerMemory("", owner->data(), kSize, Access::read, owner));
    owner.reset();
    return must(remote.startPut(local, {{0, 0, kSize}}));
  };
  {
    Ticket ticket = start();
    EXPECT_FALSE(alive.expired());
    ASSERT_TRUE(ticket.wait().ok());
  }
  ASSERT_TRUE(nodes.toA.notify("which looks through the transfers").ok());
  EXPECT_TRUE(alive.expired());
  EXPECT_EQ(text(target, kSize - 4, 4), "oooo");
}

TEST(NodeLife, aCopyIsDoneAtOnceWhereNothingElseIsNeeded) {
  NodePair nodes;
  auto target = must(nodes.a.allocate("target", 4 << 20));
  auto local = must(nodes.b.allocate("local", 4 << 20));
  auto remote = must(nodes.toA.open("target"));
  fill(local, 1);
  EXPECT_TRUE(remote.putAtOnce(local, 8, 16, 100));
  EXPECT_EQ(text(target, 16, 100), text(local, 8, 100));
  fill(target, 77);
  EXPECT_TRUE(remote.getAtOnce(local, 8, 16, 100));
  EXPECT_EQ(text(target, 16, 100), text(local, 8, 100));
  EXPECT_FALSE(remote.putAtOnce(local, 0, 0, 4 << 20)) << "too much";
  EXPECT_FALSE(remote.putAtOnce(local, 0, (4 << 20) - 4, 8)) << "out of range";
  EXPECT_FALSE(remote.putAtOnce(target, 0, 0, 8)) << "memory of another Node";
  nodes.a.close();
  EXPECT_EQ(nodes.a.nextNote(0ms).status().code(), Code::disconnected);
}

TEST(NodeLife, aPeerThatListensLaterIsReached) {
  std::string folder = testing::TempDir() + "laterXXXXXX";
  ASSERT_TRUE(mkdtemp(folder.data()));
  for (int round = 0; round < 20; ++round) {
    const std::string address = "unix://" + folder + "/" + std::to_string(round);
    Node early = must(Node::create(named("early")));
    Node late = must(Node::create(named("late")));
    EXPECT_EQ(early.connect(address, 1ms).status().code(), Code::disconnected);
    EXPECT_EQ(early.connectOnce(address, 600s).status().code(), Code::disconnected);
    std::latch begun(2);
    std::thread listening([&] {
      begun.arrive_and_wait();
      EXPECT_TRUE(late.listen(address).ok());
    });
    begun.arrive_and_wait();
    auto peer = early.connect(address, 60s);
    EXPECT_TRUE(peer.ok()) << peer.status().toString();
    listening.join();
  }
  std::filesystem::remove_all(folder);
}

TEST(NodeLife, aListenerOnEveryInterfaceNamesAnAddressThatPeersReach) {
  NodeOptions options = named("a");
  options.secret = "a secret";
  Node everywhere = must(Node::create(options));
  const std::string address = must(everywhere.listen("tcp://0.0.0.0:0"));
  EXPECT_THAT(address, testing::Not(testing::HasSubstr("0.0.0.0")));
  options.advertise = "localhost";
  Node told = must(Node::create(options));
  const std::string advertised = must(told.listen("tcp://127.0.0.1:0"));
  EXPECT_THAT(advertised, testing::StartsWith("tcp://localhost:"));
  options.name = "b";
  Node dialling = must(Node::create(options));
  EXPECT_TRUE(dialling.connect(address).ok()) << address;
  EXPECT_TRUE(dialling.connect(advertised).ok()) << advertised;

  options.advertise = "tcp://host:1";
  const Status refused = Node::create(options).status();
  EXPECT_EQ(refused.code(), Code::invalidArgument);
  EXPECT_THAT(refused.message(), testing::HasSubstr("advertise is \"tcp://host:1\""));
}

TEST(NodeLife, closingTheNodeEndsConnectingToNobody) {
  Node node = must(Node::create());
  std::thread closing([&] { node.close(); });
  const Status status = node.connect("unix:///tmp/hmc-nobody-listens-here", 600s).status();
  closing.join();
  EXPECT_EQ(status.code(), Code::disconnected);
  EXPECT_THAT(status.message(), testing::HasSubstr("closed"));
}

bool readable(int fd, int milliseconds = 0) {
  pollfd one{fd, POLLIN, 0};
  return poll(&one, 1, milliseconds) == 1;
}

TEST(NodeLife, peersThatComeAndGoAreQueued) {
  Node a = must(Node::create(named("a")));
  const std::string listener = must(a.listen("tcp://127.0.0.1:0"));
  Node early = must(Node::create(named("early")));
  must(early.connect(listener));
  must(a.peer("early"));
  const int fd = must(a.peerEventFd());
  EXPECT_TRUE(readable(fd)) << "it begins with those that are there";
  EXPECT_EQ(must(a.nextPeerEvent()).peer.name(), "early");
  EXPECT_FALSE(readable(fd));
  EXPECT_EQ(a.nextPeerEvent(0ms).status().code(), Code::deadlineExceeded);

  Node late = must(Node::create(named("late")));
  Peer toA = must(late.connect(listener));
  EXPECT_TRUE(readable(fd, 30000));
  PeerEvent joined = must(a.nextPeerEvent());
  EXPECT_EQ(joined.peer.name(), "late");
  EXPECT_EQ(joined.kind, PeerEvent::Kind::joined);
  EXPECT_TRUE(joined.reason.ok());

  early.close();
  PeerEvent left = must(a.nextPeerEvent());
  EXPECT_EQ(left.peer.name(), "early");
  EXPECT_EQ(left.kind, PeerEvent::Kind::left);
  EXPECT_THAT(left.reason.message(), testing::HasSubstr("closed the connection"));
  EXPECT_EQ(left.peer.status().code(), Code::disconnected);

  PeerEvent dialled = must(late.nextPeerEvent());
  EXPECT_EQ(dialled.peer.name(), "a") << "the side that dials is told, too";
  a.close();
  EXPECT_EQ(must(late.nextPeerEvent()).kind, PeerEvent::Kind::left);
  while (a.nextPeerEvent(0ms).ok()) {
  }
  EXPECT_EQ(a.nextPeerEvent().status().code(), Code::disconnected);
}

TEST(NodeLife, aPeerThatCameAndWentUnseenIsNotToldOf) {
  Node a = must(Node::create(named("a")));
  const std::string listener = must(a.listen("tcp://127.0.0.1:0"));
  const int fd = must(a.peerEventFd());
  for (int i = 0; i < 5; ++i) {
    Node passing = must(Node::create(named("passing")));
    must(passing.connect(listener)).close();
  }
  Node last = must(Node::create(named("last")));
  must(last.connect(listener));
  while (a.peers().size() > 1) std::this_thread::yield();
  EXPECT_EQ(must(a.nextPeerEvent()).peer.name(), "last");
  EXPECT_FALSE(readable(fd));
}

TEST(NodeLife, aForkedChildIsToldToMakeItsOwn) {
  NodePair nodes;
  auto target = must(nodes.a.allocate("target", 4096));
  auto local = must(nodes.b.allocate("local", 4096));
  auto remote = must(nodes.toA.open("target"));
  pid_t child = fork();
  if (child == 0) _exit(remote.put(local, 0, 0, 8).code() == Code::invalidArgument ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_TRUE(remote.put(local, 0, 0, 8).ok());
}

// The parent's stay refused when the child has its own.
int useOwnNodes(const std::function<Status()>& useParents) {
  NodePair own;
  auto target = must(own.a.allocate("target", 4096));
  auto local = must(own.b.allocate("local", 4096));
  if (!must(own.toA.open("target")).put(local, 0, 0, 8).ok()) return 1;
  return useParents().code() == Code::invalidArgument ? 0 : 2;
}

TEST(NodeLife, aForkedChildCanMakeItsOwn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP()
      << "the thread sanitizer takes a forked child's threads for its parent's and ends it";
#endif
  NodePair nodes;
  auto target = must(nodes.a.allocate("target", 4096));
  auto local = must(nodes.b.allocate("local", 4096));
  auto remote = must(nodes.toA.open("target"));
  pid_t child = fork();
  if (child == 0) _exit(useOwnNodes([&] { return remote.put(local, 0, 0, 8); }));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(WIFEXITED(status));
}

// One of every kind of handle.
struct Handles {
  explicit Handles(const std::string& transport)
      : nodes({transport}),
        target(must(nodes.a.allocate("target", kSize))),
        local(must(nodes.b.allocate("local", kSize))),
        remote(must(nodes.toA.open("target"))),
        ticket(must(remote.startPut(local, {{0, 0, kSize}}))),
        queue(must(CompletionQueue::create())) {
    EXPECT_TRUE(ticket.wait().ok());
  }
  static constexpr size_t kSize = size_t{9} << 20;  // more than is copied at once
  NodePair nodes;
  LocalRegion target, local;
  RemoteRegion remote;
  Ticket ticket;
  CompletionQueue queue;
};

// In the child of a fork: 0 when every call is refused and the end harms nobody, else the number of
// the call.
int refusedAndDropped(std::unique_ptr<Handles> all) {
  alarm(20);  // ends a child that hangs
  Node& node = all->nodes.b;
  Peer& peer = all->nodes.toA;
  char byte = 0;
  const Status answers[] = {node.listen("tcp://127.0.0.1:0").status(),
                            node.connect(all->nodes.listener).status(),
                            node.peer("a", 1ms).status(),
                            node.registerMemory("more", &byte, 1).status(),
                            node.nextNote(1ms).status(),
                            node.noteFd().status(),
                            node.nextPeerEvent(1ms).status(),
                            node.peerEventFd().status(),
                            peer.status(),
                            peer.open("target", 1ms).status(),
                            peer.notify("from the child", 1ms),
                            peer.probe(1ms).status(),
                            all->remote.put(all->local, 0, 0, 8),
                            all->remote.get(all->local, 0, 0, Handles::kSize, 1ms),
                            all->remote.startPut(all->local, {{0, 0, 8}}).status(),
                            all->ticket.wait(1ms),
                            all->ticket.cancel(),
                            all->queue.watch(all->ticket, 1),
                            all->local.revoke()};
  int number = 0;
  for (const Status& answer : answers) {
    ++number;
    if (answer.code() != Code::invalidArgument) return number;
  }
  if (!node.peers().empty() || !peer.explain().empty() || !all->queue.take().empty()) return 100;
  peer.close();
  node.close();
  all.reset();
  return 0;
}

class Forked : public testing::TestWithParam<const char*> {};

TEST_P(Forked, childIsRefusedEverythingAndLeavesTheParentAlone) {
  for (const PathReport& one : must(Node::create({.transports = {GetParam()}})).transports()) {
    if (one.transport == GetParam() && !one.usable) GTEST_SKIP() << one.reason;
  }
  auto all = std::make_unique<Handles>(GetParam());
  const pid_t child = fork();
  if (child == 0) _exit(refusedAndDropped(std::move(all)));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  fill(all->local, 7);
  EXPECT_TRUE(all->remote.put(all->local, 0, 0, Handles::kSize).ok());
  EXPECT_EQ(text(all->target, 0, 100), text(all->local, 0, 100));
  EXPECT_TRUE(all->nodes.toA.notify("from the parent").ok());
  EXPECT_EQ(must(all->nodes.a.nextNote()).bytes, "from the parent");
}

INSTANTIATE_TEST_SUITE_P(Transports, Forked, testing::Values("ipc", "tcp", "ucx"));

}  // namespace
}  // namespace hmc
