// Runs with HMC_MEMORY_PLUGIN providing a fake accelerator.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <future>
#include <numeric>
#include <random>

#include "base/error.h"
#include "fakes/fake_accelerator.h"
#include "fakes/pattern.h"
#include "memory/copy.h"
#include "node/staging.h"
#include "unit/node/fake_pair.h"

// Lists of blocks over a transport that reaches no accelerator: they share slots.

namespace hmc {
namespace {

using namespace std::chrono_literals;
using test::pattern;
using testing::HasSubstr;

const Device kHost{};

// Gives every block a place on each side: in a random order, with gaps between most of them.
class Scattered {
 public:
  explicit Scattered(const std::vector<size_t>& sizes) {
    for (size_t size : sizes) blocks.push_back({0, 0, size});
    localSize = scatter(&Block::localOffset);
    remoteSize = scatter(&Block::remoteOffset);
  }

  std::vector<Block> blocks;
  size_t localSize;
  size_t remoteSize;

 private:
  size_t scatter(size_t Block::*offset) {
    std::vector<size_t> order(blocks.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::shuffle(order.begin(), order.end(), random_);
    size_t end = 0;
    for (size_t index : order) {
      end += random_() % 40;
      blocks[index].*offset = end;
      end += blocks[index].size;
    }
    return end + 7;
  }
  std::mt19937 random_{11};
};

std::vector<size_t> mixedSizes() {
  std::vector<size_t> sizes;
  for (size_t i = 0; i < 300; ++i) sizes.push_back(i * 37 % 5000);
  for (size_t i = 0; i < 300; i += 25) sizes[i] = 0;
  sizes[40] = (size_t{3} << 20) + 17;
  sizes[41] = size_t{1} << 20;
  sizes[200] = (size_t{1} << 20) - 1;
  return sizes;
}

// Soon made, also without optimisation. The unit's length is a prime, so that blocks differ.
std::string longPattern(size_t size, size_t seed) {
  const std::string unit = pattern(65521, seed);
  std::string bytes;
  while (bytes.size() < size) bytes += unit;
  bytes.resize(size);
  return bytes;
}

void write(const LocalMemory& memory, std::string bytes) {
  ASSERT_TRUE(copy(memory.region(), {bytes.data(), bytes.size(), {}}).ok());
}
std::string read(const LocalMemory& memory) {
  std::string bytes(memory.region().size, '?');
  EXPECT_TRUE(copy({bytes.data(), bytes.size(), {}}, memory.region()).ok());
  return bytes;
}

// Two memories, and what must be in them after a list went from one to the other.
class ListsBetween {
 public:
  ListsBetween(FakePair& nodes, Device here, Device there, size_t localSize, size_t remoteSize)
      : local(FakePair::allocate(*nodes.b, "local", localSize, here)),
        target(FakePair::allocate(*nodes.a, "target", remoteSize, there)),
        remote(nodes.open("target")) {
    fill();
  }
  void fill() const {
    write(*local, longPattern(local->region().size, 1));
    write(*target, longPattern(target->region().size, 101));
  }
  Ticket start(OpKind kind, const std::vector<Block>& blocks) const {
    return must(RemoteMapping::start(remote, kind, local, blocks));
  }
  void expectMoved(OpKind kind, const std::vector<Block>& blocks) const {
    std::string here = longPattern(local->region().size, 1);
    std::string there = longPattern(target->region().size, 101);
    for (const auto& [from, to, size] : blocks) {
      if (kind == OpKind::put) there.replace(to, size, here, from, size);
      if (kind == OpKind::get) here.replace(from, size, there, to, size);
    }
    EXPECT_TRUE(read(*local) == here);
    EXPECT_TRUE(read(*target) == there);
  }
  void expectMoves(OpKind kind, const std::vector<Block>& blocks) const {
    const Status status = start(kind, blocks).wait(60s);
    ASSERT_TRUE(status.ok()) << status.toString();
    expectMoved(kind, blocks);
  }

  const std::shared_ptr<LocalMemory> local;
  const std::shared_ptr<LocalMemory> target;
  const std::shared_ptr<RemoteMapping> remote;
};

struct Combination {
  std::string name;
  Device here;
  Device there;
  OpKind kind;
};

std::vector<Combination> combinations() {
  std::vector<Combination> all;
  for (OpKind kind : {OpKind::put, OpKind::get}) {
    const std::string what = kind == OpKind::put ? "Put" : "Get";
    all.push_back({"hostHost" + what, kHost, kHost, kind});
    all.push_back({"hostDevice" + what, kHost, kGpu, kind});
    all.push_back({"deviceHost" + what, kGpu, kHost, kind});
    all.push_back({"deviceDevice" + what, kGpu, kOtherGpu, kind});
  }
  return all;
}

class StagedLists : public testing::TestWithParam<Combination> {
 protected:
  static void expectMoves(FakeTransport over, const std::vector<size_t>& sizes) {
    const Scattered list(sizes);
    FakePair nodes({std::move(over)});
    ListsBetween(nodes, GetParam().here, GetParam().there, list.localSize, list.remoteSize)
        .expectMoves(GetParam().kind, list.blocks);
  }
};
INSTANTIATE_TEST_SUITE_P(Memories, StagedLists, testing::ValuesIn(combinations()),
                         [](const auto& one) { return one.param.name; });

TEST_P(StagedLists, moveBlocksOfEverySize) {
  expectMoves(hostOnly(), mixedSizes());
}

// The link takes a slot in several operations, and no more than a few of them at a time.
TEST_P(StagedLists, moveOverALinkThatTakesLittleAtOnce) {
  FakeTransport narrow = hostOnly();
  for (auto* side : {&narrow.a, &narrow.b}) {
    side->largest = 100001;
    side->window = 3;
  }
  expectMoves(std::move(narrow), mixedSizes());
}

TEST_P(StagedLists, moveThousandsOfTinyBlocks) {
  std::vector<size_t> sizes(3 * SlotBlocks::kMost);
  for (size_t i = 0; i < sizes.size(); ++i) sizes[i] = i % 9;
  expectMoves(hostOnly(), sizes);
}

TEST_P(StagedLists, joinNeighbours) {
  constexpr size_t kBlock = 3000;
  constexpr size_t kCount = 1000;
  std::vector<Block> blocks;
  for (size_t i = 0; i < kCount; ++i) blocks.push_back({i * kBlock, i * kBlock, kBlock});
  // Neighbours on one side only.
  for (size_t i = 100; i < 200; ++i) std::swap(blocks[i].localOffset, blocks[i + 200].localOffset);
  for (size_t i = 500; i < 600; ++i) std::swap(blocks[i].remoteOffset, blocks[i + 9].remoteOffset);
  FakePair nodes({hostOnly()});
  ListsBetween(nodes, GetParam().here, GetParam().there, kBlock * kCount, kBlock * kCount)
      .expectMoves(GetParam().kind, blocks);
}

TEST_P(StagedLists, ofNothingAreDone) {
  FakePair nodes({hostOnly()});
  const ListsBetween both(nodes, GetParam().here, GetParam().there, 1000, 1000);
  both.expectMoves(GetParam().kind, {});
  both.expectMoves(GetParam().kind, {{0, 0, 0}, {1000, 1000, 0}});
}

// Two accelerators that the transport does not reach.
class StagedListsOfDevices : public testing::TestWithParam<OpKind> {
 protected:
  uint64_t operations() const { return nodes_.b->counters().front().operations; }

  FakePair nodes_{{hostOnly()}};
  FakeAccelerator& gpu_ = static_cast<FakeAccelerator&>(*must(findBackend(kGpu)));
};
INSTANTIATE_TEST_SUITE_P(Kinds, StagedListsOfDevices, testing::Values(OpKind::put, OpKind::get),
                         [](const auto& one) { return one.param == OpKind::put ? "put" : "get"; });

// 4,096 blocks of 16 KiB, on one side or on both in no order.
class KvCache {
 public:
  static constexpr size_t kBlock = size_t{16} << 10;
  static constexpr size_t kCount = 1024;
  static constexpr size_t kSize = kBlock * kCount;
  static constexpr size_t kSlots = kSize / StagePool::kSlotSize;

  static std::vector<Block> blocks(bool remoteToo) {
    std::vector<Block> list;
    for (size_t i = 0; i < kCount; ++i)
      list.push_back(
          {i * 1237 % kCount * kBlock, (remoteToo ? i * 2741 % kCount : i) * kBlock, kBlock});
    return list;
  }
};

TEST_P(StagedListsOfDevices, takeOneOperationOneRequestAndTwoDeviceCopiesForASlot) {
  const auto blocks = KvCache::blocks(/*remoteToo=*/true);
  const ListsBetween both(nodes_, kGpu, kOtherGpu, KvCache::kSize, KvCache::kSize);
  const size_t before = gpu_.batches();
  ASSERT_TRUE(both.start(GetParam(), blocks).wait(60s).ok());
  EXPECT_EQ(operations(), KvCache::kSlots);
  // Ours into or out of the slots, and one for each request at the target.
  EXPECT_EQ(gpu_.batches() - before, 2 * KvCache::kSlots);
  both.expectMoved(GetParam(), blocks);
}

TEST_P(StagedListsOfDevices, gatherSmallBlocksOfTheHostAsWell) {
  const auto blocks = KvCache::blocks(/*remoteToo=*/true);
  const ListsBetween both(nodes_, kHost, kGpu, KvCache::kSize, KvCache::kSize);
  const size_t before = gpu_.batches();
  ASSERT_TRUE(both.start(GetParam(), blocks).wait(60s).ok());
  EXPECT_EQ(operations(), KvCache::kSlots);
  EXPECT_EQ(gpu_.batches() - before, KvCache::kSlots);
  both.expectMoved(GetParam(), blocks);
}

TEST_P(StagedListsOfDevices, takeAnOperationForEachPlaceInThePeersHostMemory) {
  for (bool scattered : {false, true}) {
    const auto blocks = KvCache::blocks(scattered);
    const ListsBetween both(nodes_, kGpu, kHost, KvCache::kSize, KvCache::kSize);
    const size_t batches = gpu_.batches();
    const uint64_t before = operations();
    ASSERT_TRUE(both.start(GetParam(), blocks).wait(60s).ok());
    EXPECT_EQ(operations() - before, scattered ? KvCache::kCount : KvCache::kSlots);
    EXPECT_EQ(gpu_.batches() - batches, KvCache::kSlots);
    both.expectMoved(GetParam(), blocks);
  }
}

TEST_P(StagedListsOfDevices, failAloneWhenADeviceFailsInTheMiddle) {
  const Scattered list(mixedSizes());
  const ListsBetween both(nodes_, kGpu, kOtherGpu, list.localSize, list.remoteSize);
  // More often than there are slots, so that one which is not given back shows.
  for (int i = 0; i < 2 * static_cast<int>(StageHost::kSlots); ++i) {
    gpu_.failNext(FakeAccelerator::Call::copy, error(Code::failed, "the device has a fault"),
                  1 + i % 8);
    EXPECT_THAT(both.start(GetParam(), list.blocks).wait(60s).message(),
                HasSubstr("the device has a fault"));
  }
  both.fill();
  both.expectMoves(GetParam(), list.blocks);
}

TEST_P(StagedListsOfDevices, failAloneWhenAnOperationFailsInTheMiddle) {
  const Scattered list(mixedSizes());
  const ListsBetween both(nodes_, kGpu, kHost, list.localSize, list.remoteSize);
  for (uint64_t i = 0; i < 40; ++i) {
    nodes_.fake("short").faults->failNth(1 + i * 5, error(Code::failed, "the link has a fault"));
    EXPECT_THAT(both.start(GetParam(), list.blocks).wait(60s).message(),
                HasSubstr("the link has a fault"));
  }
  both.fill();
  both.expectMoves(GetParam(), list.blocks);
}

TEST_P(StagedListsOfDevices, cancelledInTheMiddleEndWhenTheDevicesAreDone) {
  const Scattered list(mixedSizes());
  const ListsBetween both(nodes_, kGpu, kOtherGpu, list.localSize, list.remoteSize);
  for (Device stuck : {kGpu, kOtherGpu}) {
    ASSERT_TRUE(gpu_.stall({stuck}, true).ok());
    const uint64_t before = gpu_.left(stuck.index);
    Ticket ticket = both.start(GetParam(), list.blocks);
    while (gpu_.left(stuck.index) == before)
      EXPECT_EQ(ticket.wait(1ms).code(), Code::deadlineExceeded);
    auto cancelled = std::async(std::launch::async, [&] { return ticket.cancel(); });
    EXPECT_EQ(ticket.wait(20ms).code(), Code::deadlineExceeded);
    ASSERT_TRUE(gpu_.stall({stuck}, false).ok());
    EXPECT_EQ(cancelled.get().code(), Code::cancelled);
  }
  both.fill();
  both.expectMoves(GetParam(), list.blocks);
}

// Some of each slot's operations are on their way, and the link takes no more.
TEST_P(StagedListsOfDevices, cancelledHalfPostedWaitForWhatIsUnderWay) {
  const Scattered list(std::vector<size_t>(1000, 3000));
  const ListsBetween both(nodes_, kGpu, kHost, list.localSize, list.remoteSize);
  auto& faults = *nodes_.fake("short").faults;
  faults.mostPerPost = 1;
  faults.stalled = true;
  Ticket ticket = both.start(GetParam(), list.blocks);
  while (operations() == 0) EXPECT_EQ(ticket.wait(1ms).code(), Code::deadlineExceeded);
  faults.mostPerPost = 0;
  auto cancelled = std::async(std::launch::async, [&] { return ticket.cancel(); });
  EXPECT_EQ(ticket.wait(20ms).code(), Code::deadlineExceeded);
  faults.stalled = false;
  EXPECT_EQ(cancelled.get().code(), Code::cancelled);
  faults.mostPerPost = 64;
  both.fill();
  both.expectMoves(GetParam(), list.blocks);
}

TEST_P(StagedListsOfDevices, nameTheBlockThatDoesNotFit) {
  const ListsBetween both(nodes_, kGpu, kOtherGpu, 1000, 1000);
  const std::vector<Block> blocks{{0, 0, 10}, {20, 991, 10}, {40, 40, 10}};
  const auto refused = RemoteMapping::start(both.remote, GetParam(), both.local, blocks);
  EXPECT_EQ(refused.status().code(), Code::outOfRange);
  EXPECT_THAT(refused.status().message(), HasSubstr("of 10 bytes at remote offset 991"));
}

// With more than all slots hold, so that some of a get is still to be asked for.
TEST_P(StagedListsOfDevices, endWhenTheirRegionIsTakenBack) {
  const Scattered list(std::vector<size_t>(20, StagePool::kSlotSize));
  const ListsBetween both(nodes_, kGpu, kOtherGpu, list.localSize, list.remoteSize);
  ASSERT_TRUE(gpu_.stall({kGpu}, true).ok());
  Ticket ticket = both.start(GetParam(), list.blocks);
  auto revoked = std::async(std::launch::async, [&] { return both.target->revoke(60s); });
  EXPECT_TRUE(revoked.get().ok());
  const std::string before = read(*both.target);
  ASSERT_TRUE(gpu_.stall({kGpu}, false).ok());
  EXPECT_EQ(ticket.wait(60s).code(), Code::notFound);
  EXPECT_TRUE(read(*both.target) == before);
}

}  // namespace
}  // namespace hmc
