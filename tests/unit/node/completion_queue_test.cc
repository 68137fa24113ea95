#include <gmock/gmock.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>

#include "unit/node/node_pair.h"

namespace hmc {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr int kPatienceMs = 60000;

bool readableWithin(int fd, int timeoutMs) {
  pollfd one{fd, POLLIN, 0};
  return poll(&one, 1, timeoutMs) == 1;
}

// Takes what arrives until there are so many ids.
std::vector<uint64_t> takeAll(CompletionQueue& queue, size_t count) {
  std::vector<uint64_t> ids;
  while (ids.size() < count && readableWithin(queue.fd(), kPatienceMs)) {
    const auto some = queue.take();
    EXPECT_FALSE(some.empty()) << "readableWithin, and nothing there";
    ids.insert(ids.end(), some.begin(), some.end());
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

// Over each of the ways that a transfer may take.
class CompletionQueueOver : public testing::TestWithParam<std::string> {
 protected:
  NodePair nodes_{{GetParam()}};
  CompletionQueue completed_ = must(CompletionQueue::create());
};
INSTANTIATE_TEST_SUITE_P(Node, CompletionQueueOver, testing::Values("ipc", "tcp"),
                         [](const auto& over) { return over.param; });

TEST_P(CompletionQueueOver, aWatchedPutAndGetArriveThoughNobodyWaits) {
  constexpr size_t kSize = size_t{24} << 20;
  auto target = must(nodes_.a.allocate("target", kSize));
  auto local = must(nodes_.b.allocate("local", kSize));
  auto remote = must(nodes_.toA.open("target"));
  fill(local, 7);
  Ticket put = must(remote.startPut(local, {{0, 0, kSize}}));
  ASSERT_TRUE(completed_.watch(put, 70).ok());
  EXPECT_THAT(takeAll(completed_, 1), ElementsAre(70));
  EXPECT_TRUE(put.wait(0s).ok());
  EXPECT_EQ(0, memcmp(local.data(), target.data(), kSize));

  fill(target, 50);
  Ticket get = must(remote.startGet(local, {{0, 0, kSize}}));
  ASSERT_TRUE(completed_.watch(get, 71).ok());
  EXPECT_THAT(takeAll(completed_, 1), ElementsAre(71));
  EXPECT_TRUE(get.wait(0s).ok());
  EXPECT_EQ(0, memcmp(local.data(), target.data(), kSize));
  EXPECT_FALSE(readableWithin(completed_.fd(), 0));
}

TEST_P(CompletionQueueOver, tenThousandAtOnceAllArriveOnce) {
  constexpr size_t kCount = 10000;
  constexpr size_t kEach = 512;
  auto target = must(nodes_.a.allocate("target", kCount * kEach));
  auto local = must(nodes_.b.allocate("local", kCount * kEach));
  auto remote = must(nodes_.toA.open("target"));
  fill(local, 3);
  for (size_t i = 0; i < kCount; ++i)
    ASSERT_TRUE(
        completed_.watch(must(remote.startPut(local, {{i * kEach, i * kEach, kEach}})), i).ok());
  const auto ids = takeAll(completed_, kCount);
  ASSERT_EQ(ids.size(), kCount);
  for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(ids[i], i);
  EXPECT_EQ(0, memcmp(local.data(), target.data(), kCount * kEach));
  EXPECT_FALSE(readableWithin(completed_.fd(), 0));
}

TEST_P(CompletionQueueOver, anotherThreadMayWaitForTheSameTicket) {
  constexpr size_t kSize = size_t{16} << 20;
  auto target = must(nodes_.a.allocate("target", kSize));
  auto local = must(nodes_.b.allocate("local", kSize));
  auto remote = must(nodes_.toA.open("target"));
  for (uint64_t round = 0; round < 10; ++round) {
    Ticket ticket = must(remote.startPut(local, {{0, 0, kSize}}));
    std::thread waiter([ticket]() mutable { EXPECT_TRUE(ticket.wait(60s).ok()); });
    ASSERT_TRUE(completed_.watch(ticket, round).ok());
    EXPECT_THAT(takeAll(completed_, 1), ElementsAre(round));
    EXPECT_TRUE(remote.put(local, 0, 0, 4096).ok());
    waiter.join();
  }
}

TEST_P(CompletionQueueOver, aCancelledTicketArrives) {
  constexpr size_t kSize = size_t{64} << 20;
  auto target = must(nodes_.a.allocate("target", kSize));
  auto local = must(nodes_.b.allocate("local", kSize));
  auto remote = must(nodes_.toA.open("target"));
  Ticket ticket = must(remote.startPut(local, {{0, 0, kSize}}));
  ASSERT_TRUE(completed_.watch(ticket, 1).ok());
  const Status outcome = ticket.cancel();
  EXPECT_TRUE(outcome.ok() || outcome.code() == Code::cancelled) << outcome.toString();
  EXPECT_THAT(takeAll(completed_, 1), ElementsAre(1));
  EXPECT_EQ(ticket.wait(0s).code(), outcome.code());
}

TEST_P(CompletionQueueOver, ticketsOfANodeThatWasDestroyedArrive) {
  constexpr size_t kEach = size_t{9} << 20;
  constexpr size_t kCount = 20;
  auto target = must(nodes_.a.allocate("target", kEach));
  auto local = must(nodes_.b.allocate("local", kEach));
  auto remote = must(nodes_.toA.open("target"));
  std::vector<Ticket> tickets;
  for (size_t i = 0; i < kCount; ++i) {
    tickets.push_back(must(remote.startPut(local, {{0, 0, kEach}})));
    ASSERT_TRUE(completed_.watch(tickets[i], i).ok());
  }
  { Node gone = std::move(nodes_.b); }
  EXPECT_EQ(takeAll(completed_, kCount).size(), kCount);
  for (Ticket& ticket : tickets) {
    const Status outcome = ticket.wait(0s);
    EXPECT_TRUE(outcome.ok() || outcome.code() == Code::disconnected) << outcome.toString();
  }
}

TEST_P(CompletionQueueOver, ticketsToAPeerThatWasDestroyedArrive) {
  constexpr size_t kEach = size_t{9} << 20;
  constexpr size_t kCount = 20;
  auto local = must(nodes_.b.allocate("local", kEach));
  {
    auto target = must(nodes_.a.allocate("target", kEach));
    auto remote = must(nodes_.toA.open("target"));
    for (size_t i = 0; i < kCount; ++i)
      ASSERT_TRUE(completed_.watch(must(remote.startPut(local, {{0, 0, kEach}})), i).ok());
    Node gone = std::move(nodes_.a);
  }
  EXPECT_EQ(takeAll(completed_, kCount).size(), kCount);
}

TEST_P(CompletionQueueOver, everythingMayGoInAnyOrderWhileTransfersAreUnderWay) {
  constexpr size_t kEach = size_t{9} << 20;
  auto target = must(nodes_.a.allocate("target", kEach));
  for (int order = 0; order < 6; ++order) {
    std::optional<Node> node = must(Node::create(named("guest", {GetParam()})));
    std::optional<CompletionQueue> queue = must(CompletionQueue::create());
    std::vector<Ticket> tickets;
    {
      Peer peer = must(node->connect(nodes_.listener));
      auto local = must(node->allocate("local", kEach));
      auto remote = must(peer.open("target"));
      for (size_t i = 0; i < 8; ++i) {
        tickets.push_back(must(remote.startPut(local, {{0, 0, kEach}})));
        ASSERT_TRUE(queue->watch(tickets.back(), i).ok());
      }
    }
    for (int step = 0; step < 3; ++step) {
      switch ((order + (order < 3 ? step : 2 * step)) % 3) {
        case 0:
          node.reset();
          break;
        case 1:
          queue.reset();
          break;
        default:
          tickets.clear();
      }
    }
  }
}

TEST(CompletionQueue, aTicketThatIsDoneArrivesAtOnce) {
  NodePair nodes({"tcp"});
  auto target = must(nodes.a.allocate("target", 4096));
  auto local = must(nodes.b.allocate("local", 4096));
  auto remote = must(nodes.toA.open("target"));
  Ticket ticket = must(remote.startPut(local, {{0, 0, 4096}}));
  ASSERT_TRUE(ticket.wait(60s).ok());
  CompletionQueue queue = must(CompletionQueue::create());
  EXPECT_FALSE(readableWithin(queue.fd(), 0));
  ASSERT_TRUE(queue.watch(ticket, 5).ok());
  ASSERT_TRUE(queue.watch(ticket, 6).ok());
  EXPECT_TRUE(readableWithin(queue.fd(), 0));
  EXPECT_THAT(queue.take(), ElementsAre(5, 6));
  EXPECT_FALSE(readableWithin(queue.fd(), 0));
  EXPECT_THAT(queue.take(), IsEmpty());
}

TEST(CompletionQueue, oneTicketArrivesWhereverItIsWatched) {
  NodePair nodes({"tcp"});
  constexpr size_t kSize = size_t{16} << 20;
  auto target = must(nodes.a.allocate("target", kSize));
  auto local = must(nodes.b.allocate("local", kSize));
  auto remote = must(nodes.toA.open("target"));
  Ticket ticket = must(remote.startPut(local, {{0, 0, kSize}}));
  CompletionQueue here = must(CompletionQueue::create());
  CompletionQueue there = must(CompletionQueue::create());
  ASSERT_TRUE(here.watch(ticket, 1).ok());
  ASSERT_TRUE(here.watch(ticket, 2).ok());
  ASSERT_TRUE(there.watch(ticket, 3).ok());
  EXPECT_THAT(takeAll(here, 2), UnorderedElementsAre(1, 2));
  EXPECT_THAT(takeAll(there, 1), ElementsAre(3));
}

TEST(CompletionQueue, manyThreadsWatchAndWaitTogether) {
  NodePair nodes({"tcp"});
  constexpr size_t kThreads = 4;
  constexpr size_t kEach = 200;
  constexpr size_t kPiece = 100000;
  auto target = must(nodes.a.allocate("target", kThreads * kPiece));
  auto local = must(nodes.b.allocate("local", kThreads * kPiece));
  auto remote = must(nodes.toA.open("target"));
  CompletionQueue queue = must(CompletionQueue::create());
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < kEach; ++i) {
        Ticket ticket = must(remote.startPut(local, {{t * kPiece, t * kPiece, kPiece}}));
        EXPECT_TRUE(queue.watch(ticket, t * kEach + i).ok());
        const Status other = i % 3 == 0   ? ticket.wait(60s)
                             : i % 3 == 1 ? remote.put(local, t * kPiece, t * kPiece, 8, 60s)
                                          : Status();
        EXPECT_TRUE(other.ok()) << other.toString();
      }
    });
  }
  const auto ids = takeAll(queue, kThreads * kEach);
  for (auto& thread : threads) thread.join();
  ASSERT_EQ(ids.size(), kThreads * kEach);
  for (size_t i = 0; i < ids.size(); ++i) ASSERT_EQ(ids[i], i);
}

TEST(CompletionQueue, aTicketSaysWhichPathItTakes) {
  NodePair mapped({"ipc"});
  auto target = must(mapped.a.allocate("target", 16 << 20));
  auto local = must(mapped.b.allocate("local", 16 << 20));
  auto remote = must(mapped.toA.open("target"));
  EXPECT_EQ(must(remote.startPut(local, {{0, 0, 8}})).path(), "ipc (mapped)");
  EXPECT_EQ(must(remote.startPut(local, {{0, 0, 16 << 20}})).path(), "ipc (mapped)");
}

TEST(NoteFd, isReadableWhileANoteWaits) {
  NodePair nodes;
  ASSERT_TRUE(nodes.toA.notify("first").ok());
  ASSERT_TRUE(must(nodes.a.nextNote(60s)).bytes == "first");
  EXPECT_EQ(nodes.a.nextNote(0s).status().code(), Code::deadlineExceeded);
  ASSERT_TRUE(nodes.toA.notify("before it was asked for").ok());
  ASSERT_TRUE(nodes.toA.notify("two").ok());
  const int fd = must(nodes.a.noteFd());
  EXPECT_EQ(must(nodes.a.noteFd()), fd);
  ASSERT_TRUE(readableWithin(fd, kPatienceMs));
  EXPECT_EQ(must(nodes.a.nextNote(60s)).bytes, "before it was asked for");
  EXPECT_EQ(must(nodes.a.nextNote(60s)).bytes, "two");
  EXPECT_FALSE(readableWithin(fd, 0));
  ASSERT_TRUE(nodes.toA.notify("three").ok());
  ASSERT_TRUE(readableWithin(fd, kPatienceMs));
  EXPECT_EQ(must(nodes.a.nextNote(0s)).bytes, "three");
  EXPECT_FALSE(readableWithin(fd, 0));
}

TEST(NoteFd, staysReadableOnceItsNodeIsGone) {
  NodePair nodes;  // toB keeps what is behind a
  const int fd = must(nodes.a.noteFd());
  EXPECT_FALSE(readableWithin(fd, 0));
  { Node gone = std::move(nodes.a); }
  EXPECT_TRUE(readableWithin(fd, kPatienceMs));
}

}  // namespace
}  // namespace hmc
