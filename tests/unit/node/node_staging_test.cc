#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <numeric>
#include <thread>

#include "base/error.h"
#include "memory/copy.h"
#include "node/staging.h"
#include "unit/node/fake_pair.h"

// A transport that cannot reach the peer's accelerator: bytes pass through host slots over there.

namespace hmc {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

constexpr size_t kStagedSize = (size_t{5} << 20) + 123;
const std::vector<Block> kStagedWhole{{0, 0, kStagedSize}};
const std::vector<Block> kHundred{{0, 0, 100}};

class NodeStaging : public testing::Test {
 protected:
  static std::vector<char> pattern(int seed, size_t size = kStagedSize) {
    std::vector<char> bytes(size);
    std::iota(bytes.begin(), bytes.end(), static_cast<char>(seed));
    return bytes;
  }
  static void write(const LocalMemory& memory, std::vector<char> bytes) {
    ASSERT_TRUE(copy(memory.region(), {bytes.data(), bytes.size(), {}}).ok());
  }
  static std::vector<char> read(const LocalMemory& memory) {
    std::vector<char> bytes(memory.region().size);
    EXPECT_TRUE(copy({bytes.data(), bytes.size(), {}}, memory.region()).ok());
    return bytes;
  }
  static Status put(const RemoteMapping& remote, const LocalMemory& local, size_t size,
                    std::chrono::nanoseconds timeout = 30s) {
    return remote.run(OpKind::put, local, 0, 0, size, timeout);
  }
  // Nothing runs there until the event is signalled.
  static std::unique_ptr<DeviceEvent> stickGpu() {
    auto event = must(must(findBackend(kGpu))->event(kGpu.index));
    for (uint8_t lane = 0; lane < DeviceQueue::kLanes; ++lane)
      EXPECT_TRUE(event->hold({kGpu, nullptr, lane}).ok());
    return event;
  }
  static Status ask(FakePair& nodes, const SlotCopy& copy) {
    return nodes.toA->channel().call(kCopySlot, copy.encode(), kDefaultTimeout).status();
  }
  static void expectBothWays(Device here) {
    FakePair nodes({hostOnly()});
    auto target = FakePair::allocate(*nodes.a, "target", kStagedSize, kOtherGpu);
    auto local = FakePair::allocate(*nodes.b, "local", kStagedSize, here);
    auto remote = nodes.open("target");
    write(*local, pattern(5));
    ASSERT_TRUE(remote->run(OpKind::put, *local, 1, 2, kStagedSize - 3, 30s).ok());
    const auto arrived = read(*target);
    const auto sent = pattern(5);
    EXPECT_EQ(0, memcmp(arrived.data() + 2, sent.data() + 1, kStagedSize - 3));
    EXPECT_EQ(arrived[1], 0) << "what was not put stays";
    write(*target, pattern(99));
    Status got = remote->run(OpKind::get, *local, 0, 0, kStagedSize, 30s);
    ASSERT_TRUE(got.ok()) << got.toString();
    EXPECT_EQ(read(*local), pattern(99));
  }
};

// A region of an accelerator, opened, and memory of the host's to put there.
class StagedPut : public NodeStaging {
 protected:
  FakePair nodes_{{hostOnly()}};
  std::shared_ptr<LocalMemory> target_ = FakePair::allocate(*nodes_.a, "target", kStagedSize, kGpu);
  std::shared_ptr<LocalMemory> local_ = FakePair::allocate(*nodes_.b, "local", kStagedSize);
  std::shared_ptr<RemoteMapping> remote_ = nodes_.open("target");
};

TEST_F(NodeStaging, hostMemoryGoesToAnAcceleratorAndBack) {
  expectBothWays({});
}

TEST_F(NodeStaging, memoryThatNeitherSideCanReachIsStagedAtBoth) {
  expectBothWays(kGpu);
}

TEST_F(NodeStaging, thePathSaysSoAndExplainSaysWhy) {
  FakePair nodes({hostOnly()});
  auto target = FakePair::allocate(*nodes.a, "target", kStagedSize, kGpu);
  testing::internal::CaptureStderr();
  EXPECT_EQ(nodes.open("target")->path(), "short (staged at the target)");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("short cannot register cuda"));
  EXPECT_THAT(nodes.reason("short"), HasSubstr("staged at the target: short cannot register cuda"));
}

TEST_F(NodeStaging, explainSaysWhyOurOwnMemoryIsStaged) {
  FakePair nodes({hostOnly()});
  auto target = FakePair::allocate(*nodes.a, "target", kStagedSize);
  auto remote = nodes.open("target");
  auto host = FakePair::allocate(*nodes.b, "host", kStagedSize);
  ASSERT_TRUE(put(*remote, *host, kStagedSize).ok());
  EXPECT_THAT(nodes.reason("short"), Not(HasSubstr("memory of ours")));
  auto local = FakePair::allocate(*nodes.b, "local", kStagedSize, kGpu);
  ASSERT_TRUE(put(*remote, *local, kStagedSize).ok());
  EXPECT_THAT(nodes.reason("short"),
              HasSubstr("memory of ours passes through the host: short cannot register cuda"));
}

TEST_F(NodeStaging, aTransportThatReachesTheMemoryIsTakenInstead) {
  FakePair nodes({hostOnly(), FakeTransport("long", {{"", 20000, 1}})});
  auto target = FakePair::allocate(*nodes.a, "target", kStagedSize, kGpu);
  EXPECT_EQ(nodes.open("target")->path(), "long");
  EXPECT_EQ(*nodes.fake("short").a.registered, 0) << "no slots either";
}

TEST_F(StagedPut, aBatchLandsBlockByBlock) {
  write(*local_, pattern(1));
  std::vector<Block> blocks;
  for (size_t i = 0; i < 100; ++i) blocks.push_back({i * 1000, i * 2000, 500});
  Ticket ticket = must(RemoteMapping::start(remote_, OpKind::put, local_, blocks));
  ASSERT_TRUE(ticket.wait().ok());
  const auto arrived = read(*target_);
  const auto sent = pattern(1);
  for (const Block& block : blocks) {
    ASSERT_EQ(0, memcmp(&arrived[block.remoteOffset], &sent[block.localOffset], block.size));
    ASSERT_EQ(arrived[block.remoteOffset + block.size], 0);
  }
}

TEST_F(StagedPut, ticketsThatNobodyWaitsForDoNotKeepTheSlots) {
  write(*local_, pattern(3));
  std::vector<Ticket> tickets;
  for (int i = 0; i < 5; ++i)
    tickets.push_back(must(RemoteMapping::start(remote_, OpKind::put, local_, kStagedWhole)));
  EXPECT_TRUE(put(*remote_, *local_, kStagedSize).ok());
  EXPECT_EQ(read(*target_), pattern(3));
  for (auto& ticket : tickets) EXPECT_TRUE(ticket.wait().ok());
}

// Far more pieces than there are slots, among them some of a transfer that nobody moves.
TEST_F(StagedPut, watchedTicketsArriveThoughNobodyWaits) {
  write(*local_, pattern(3));
  // Gets have memory of their own: nothing orders them with the puts.
  auto source = FakePair::allocate(*nodes_.a, "source", kStagedSize, kGpu);
  auto received = FakePair::allocate(*nodes_.b, "received", kStagedSize);
  auto other = nodes_.open("source");
  CompletionQueue queue = must(CompletionQueue::create());
  Ticket unwatched = must(RemoteMapping::start(remote_, OpKind::put, local_, kStagedWhole));
  constexpr size_t kCount = 6;
  for (size_t i = 0; i < kCount; ++i) {
    Ticket ticket =
        must(i % 2 == 0 ? RemoteMapping::start(remote_, OpKind::put, local_, kStagedWhole)
                        : RemoteMapping::start(other, OpKind::get, received, kStagedWhole));
    ASSERT_TRUE(queue.watch(ticket, i).ok());
  }
  size_t arrived = 0;
  pollfd event{queue.fd(), POLLIN, 0};
  while (arrived < kCount && poll(&event, 1, 60000) == 1) arrived += queue.take().size();
  EXPECT_EQ(arrived, kCount);
  EXPECT_TRUE(unwatched.wait(60s).ok());
}

TEST_F(NodeStaging, manyThreadsShareTheSlots) {
  FakePair nodes({hostOnly()});
  constexpr size_t kThreads = 6;
  constexpr size_t kPart = size_t{2} << 20;
  auto target = FakePair::allocate(*nodes.a, "target", kThreads * kPart, kGpu);
  auto local = FakePair::allocate(*nodes.b, "local", kThreads * kPart);
  auto remote = nodes.open("target");
  write(*local, pattern(7, kThreads * kPart));
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 3; ++i) {
        if (!remote->run(OpKind::put, *local, t * kPart, t * kPart, kPart, 60s).ok()) ++failures;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(read(*target), pattern(7, kThreads * kPart));
}

TEST_F(StagedPut, aFailedPieceFailsTheTransferAndGivesItsSlotBack) {
  for (uint32_t i = 0; i < 2 * StageHost::kSlots; ++i) {
    nodes_.fake("short").faults->failNth(2, error(Code::failed, "piece two"));
    EXPECT_THAT(put(*remote_, *local_, kStagedSize).message(), HasSubstr("piece two"));
  }
  EXPECT_TRUE(put(*remote_, *local_, kStagedSize).ok());
}

TEST_F(NodeStaging, theTargetChecksWhatItIsAskedFor) {
  FakePair nodes({hostOnly()});
  auto target = FakePair::allocate(*nodes.a, "target", kStagedSize, kGpu);
  SlotCopy copy{OpKind::put, "short", 0, "target", target->number(), {{0, 0, 100}}};
  auto& [inSlot, offset, size] = copy.blocks.front();
  EXPECT_EQ(ask(nodes, copy).code(), Code::invalidArgument) << "no slots yet";
  auto remote = nodes.open("target");
  EXPECT_TRUE(ask(nodes, copy).ok());
  offset = kStagedSize - 99;
  EXPECT_EQ(ask(nodes, copy).code(), Code::outOfRange);
  offset = UINT64_MAX;
  EXPECT_EQ(ask(nodes, copy).code(), Code::outOfRange);
  offset = 0;
  copy.slot = StageHost::kSlots;
  EXPECT_EQ(ask(nodes, copy).code(), Code::outOfRange);
  copy.slot = 0;
  size = StagePool::kSlotSize + 1;
  EXPECT_EQ(ask(nodes, copy).code(), Code::outOfRange);
  size = 100;
  copy.number += 1;
  EXPECT_EQ(ask(nodes, copy).code(), Code::notFound);
  Region region = must((*findBackend(kGpu))->allocate(0, kStagedSize));
  auto fixed = must(nodes.a->registerMemory("fixed", region, Access::read, /*owned=*/true));
  copy.region = "fixed";
  copy.number = fixed->number();
  EXPECT_EQ(ask(nodes, copy).code(), Code::permissionDenied);
  copy.kind = OpKind::get;
  EXPECT_TRUE(ask(nodes, copy).ok());
  copy.transport = "bicycle";
  EXPECT_EQ(ask(nodes, copy).code(), Code::unsupported);
}

TEST_F(StagedPut, aRegionThatIsGoneIsNotTakenForAnotherOfItsName) {
  ASSERT_TRUE(put(*remote_, *local_, 100).ok());
  target_.reset();
  EXPECT_EQ(put(*remote_, *local_, 100).code(), Code::notFound);
  target_ = FakePair::allocate(*nodes_.a, "target", kStagedSize, kGpu);
  Status other = put(*remote_, *local_, 100);
  EXPECT_EQ(other.code(), Code::notFound);
  EXPECT_THAT(other.message(), HasSubstr("target"));
  EXPECT_TRUE(put(*nodes_.open("target"), *local_, 100).ok());
}

TEST_F(NodeStaging, aPeerThatGoesEndsWhatIsUnderWayAndItsSlots) {
  FakePair nodes({hostOnly()}, {}, 500ms);
  auto target = FakePair::allocate(*nodes.a, "target", kStagedSize, kGpu);
  auto local = FakePair::allocate(*nodes.b, "local", kStagedSize);
  auto remote = nodes.open("target");
  EXPECT_EQ(*nodes.fake("short").a.live, 1) << "the slots";
  nodes.fake("short").faults->stalled = true;
  Ticket ticket = must(RemoteMapping::start(remote, OpKind::put, local, kStagedWhole));
  std::thread end([&] { nodes.a->close(); });
  EXPECT_EQ(ticket.wait().code(), Code::disconnected);
  end.join();
  // Its control thread may still be about it.
  for (Deadline patience(30s); *nodes.fake("short").a.live > 0 && !patience.passed();)
    std::this_thread::yield();
  EXPECT_EQ(*nodes.fake("short").a.live, 0);
  EXPECT_EQ(put(*remote, *local, 8).code(), Code::disconnected);
}

// The target's control thread serves everybody.
TEST_F(NodeStaging, aStuckDeviceAtTheTargetHoldsUpNothingElse) {
  FakePair nodes({hostOnly()});
  auto target = FakePair::allocate(*nodes.a, "target", kStagedSize, kGpu);
  auto other = FakePair::allocate(*nodes.a, "other", kStagedSize, kOtherGpu);
  auto local = FakePair::allocate(*nodes.b, "local", kStagedSize);
  write(*local, pattern(6));
  auto remote = nodes.open("target");
  auto stuck = stickGpu();
  Ticket ticket = must(RemoteMapping::start(remote, OpKind::put, local, kHundred));
  EXPECT_EQ(ticket.wait(100ms).code(), Code::deadlineExceeded);
  EXPECT_TRUE(put(*nodes.open("other"), *local, 100).ok());
  ASSERT_TRUE(stuck->signal().ok());
  EXPECT_TRUE(ticket.wait(30s).ok());
  EXPECT_EQ(0, memcmp(read(*target).data(), pattern(6).data(), 100));
}

TEST_F(StagedPut, memoryIsGivenBackOnlyWhenTheDeviceIsDoneWithIt) {
  auto stuck = stickGpu();
  Ticket ticket = must(RemoteMapping::start(remote_, OpKind::put, local_, kHundred));
  EXPECT_EQ(ticket.wait(100ms).code(), Code::deadlineExceeded);
  nodes_.b->close();
  EXPECT_EQ(ticket.wait(30s).code(), Code::disconnected);
  std::atomic<bool> signalled{false};
  std::jthread later([&] {
    signalled = true;
    EXPECT_TRUE(stuck->signal().ok());
  });
  EXPECT_TRUE(target_->revoke(30s).ok());
  EXPECT_TRUE(signalled);
}

TEST_F(NodeStaging, cancelAndDeadlineStopIt) {
  FakePair nodes({hostOnly()}, {}, 500ms);
  auto target = FakePair::allocate(*nodes.a, "target", kStagedSize, kGpu);
  auto local = FakePair::allocate(*nodes.b, "local", kStagedSize);
  write(*local, pattern(8));
  auto remote = nodes.open("target");
  nodes.fake("short").faults->mostPerPost = 0;
  Ticket ticket = must(RemoteMapping::start(remote, OpKind::put, local, kStagedWhole));
  EXPECT_EQ(ticket.cancel().code(), Code::cancelled);
  EXPECT_EQ(put(*remote, *local, kStagedSize, 20ms).code(), Code::deadlineExceeded);
  EXPECT_EQ(read(*target), std::vector<char>(kStagedSize)) << "nothing was moved";
  nodes.fake("short").faults->mostPerPost = 64;
  EXPECT_TRUE(put(*remote, *local, kStagedSize).ok()) << "all slots are back";
  EXPECT_EQ(read(*target), pattern(8));
}

}  // namespace
}  // namespace hmc
