// Runs with HMC_MEMORY_PLUGIN providing a fake accelerator.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "base/codec.h"
#include "fakes/pattern.h"
#include "memory/copy.h"
#include "node/staging.h"
#include "unit/node/fake_pair.h"

// Requests for copies between slots and our memory from a peer that means harm.

namespace hmc {
namespace {

using namespace std::chrono_literals;
using test::pattern;
using testing::HasSubstr;

// What a peer may ask for, which need not come from our own code.
class LyingPeer : public testing::Test {
 protected:
  static constexpr size_t kSize = 100000;
  Status ask(std::vector<Block> blocks) {
    const SlotCopy copy{OpKind::put, "short", 0, "target", target_->number(), std::move(blocks)};
    return askRaw(copy.encode());
  }
  Status askRaw(std::string_view request) {
    return nodes_.toA->channel().call(kCopySlot, request, 60s).status();
  }
  // A request whose list of blocks is for the caller to write.
  Writer head() const {
    Writer out;
    out.u8(0).string("short").u32(0).string("target").u64(target_->number());
    return out;
  }

  FakePair nodes_{{hostOnly()}};
  std::shared_ptr<LocalMemory> target_ = FakePair::allocate(*nodes_.a, "target", kSize, kGpu);
  std::shared_ptr<RemoteMapping> remote_ = nodes_.open("target");
};

TEST_F(LyingPeer, writesNothingWhereOneOfManyBlocksDoesNotFit) {
  std::string bytes = pattern(kSize);
  ASSERT_TRUE(copy(target_->region(), {bytes.data(), kSize, {}}).ok());
  const uint64_t far = UINT64_MAX - 5;
  for (const Block& bad : {Block{10, kSize - 9, 10}, Block{10, kSize, 1}, Block{10, far, 10},
                           Block{10, far, 6}, Block{10, UINT64_MAX, 1}}) {
    const Status refused = ask({{0, 0, 10}, bad, {20, 20, 10}});
    EXPECT_EQ(refused.code(), Code::outOfRange) << bad.remoteOffset;
    EXPECT_THAT(refused.message(), HasSubstr(fmt::format("offset {}", bad.remoteOffset)));
  }
  std::string after(kSize, '?');
  ASSERT_TRUE(copy({after.data(), kSize, {}}, target_->region()).ok());
  EXPECT_TRUE(after == bytes);
  EXPECT_TRUE(ask({{0, 0, 10}, {10, kSize - 10, 10}}).ok());
}

TEST_F(LyingPeer, cannotReadOrWriteBeyondItsSlot) {
  EXPECT_EQ(ask({{0, 0, StagePool::kSlotSize}, {0, 0, 1}}).code(), Code::outOfRange);
  // Sizes that would wrap around in 32 bits.
  EXPECT_EQ(ask({{0, 0, UINT32_MAX}, {0, 0, 2}}).code(), Code::outOfRange);
  EXPECT_EQ(ask(std::vector<Block>(SlotBlocks::kMost, {0, 0, UINT32_MAX})).code(),
            Code::outOfRange);
}

TEST_F(LyingPeer, cannotHaveMuchAllocatedOrCopied) {
  EXPECT_EQ(ask({}).code(), Code::outOfRange);
  EXPECT_TRUE(ask(std::vector<Block>(SlotBlocks::kMost, {0, 0, 1})).ok());
  EXPECT_EQ(ask(std::vector<Block>(SlotBlocks::kMost + 1, {0, 0, 1})).code(), Code::outOfRange);
  EXPECT_EQ(askRaw(head().u32(2).u64(0).u32(1).take()).code(), Code::outOfRange);
  EXPECT_EQ(askRaw(head().u32(UINT32_MAX).take()).code(), Code::outOfRange);
  EXPECT_EQ(askRaw(head().take()).code(), Code::outOfRange);
  EXPECT_EQ(askRaw(head().u32(1).u64(0).u32(1).u8(0).take()).code(), Code::invalidArgument);
}

// Each request would wait in our memory for a device that may be slow.
TEST_F(LyingPeer, cannotAskForASecondCopyOfASlotBeforeTheFirstIsDone) {
  auto stuck = must(must(findBackend(kGpu))->event(kGpu.index));
  for (uint8_t lane = 0; lane < DeviceQueue::kLanes; ++lane)
    ASSERT_TRUE(stuck->hold({kGpu, nullptr, lane}).ok());
  const SlotCopy copy{OpKind::put, "short", 0, "target", target_->number(), {{0, 0, 10}}};
  std::promise<Status> first;
  nodes_.toA->channel().ask(kCopySlot, copy.encode(),
                            [&](const auto& answer) { first.set_value(answer.status()); });
  EXPECT_EQ(ask({{0, 0, 10}}).code(), Code::exhausted);
  ASSERT_TRUE(stuck->signal().ok());
  EXPECT_TRUE(first.get_future().get().ok());
  EXPECT_TRUE(ask({{0, 0, 10}}).ok());
}

TEST_F(LyingPeer, isNotAnsweredInTheEarlierForm) {
  constexpr uint16_t kEarlier = 6;
  const std::string request = head().u64(0).u64(100).take();
  EXPECT_EQ(nodes_.toA->channel().call(kEarlier, request, 60s).status().code(), Code::unsupported);
}

}  // namespace
}  // namespace hmc
