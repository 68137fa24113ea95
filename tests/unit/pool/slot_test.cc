#include "pool/slot.h"

#include <gtest/gtest.h>

#include <thread>

namespace hmc::pool {
namespace {

Reach reachOf(uint64_t size) {
  Reach reach;
  reach.size = size;
  return reach;
}

TEST(Slot, isEnteredWhileItIsOpen) {
  Slot slot;
  EXPECT_FALSE(SlotUse(&slot));
  slot.open(reachOf(5));
  {
    const SlotUse use(&slot);
    ASSERT_TRUE(use);
    EXPECT_EQ(use->size, 5u);
  }
  EXPECT_EQ(slot.close().size, 5u);
  EXPECT_FALSE(SlotUse(&slot));
  EXPECT_FALSE(SlotUse(nullptr));
}

TEST(Slot, closesWhenTheLastOneHasLeft) {
  Slot slot;
  slot.open(reachOf(1));
  std::atomic<bool> closed{false};
  auto use = std::make_unique<SlotUse>(&slot);
  std::jthread closer([&] {
    slot.close();
    closed = true;
  });
  // Nobody gets in any more, once it closes.
  while (SlotUse(&slot)) std::this_thread::yield();
  EXPECT_FALSE(closed);
  use.reset();
  closer.join();
  EXPECT_TRUE(closed);
}

// What a user inside sees never changes under it.
TEST(Slot, keepsWhatItHoldsFromThoseInside) {
  Slot slot;
  std::atomic<bool> stop{false};
  std::vector<std::jthread> users;
  std::atomic<uint64_t> entered{0};
  for (int i = 0; i < 3; ++i) {
    users.emplace_back([&] {
      while (!stop) {
        const SlotUse use(&slot);
        if (!use) continue;
        const uint64_t before = use->size;
        std::this_thread::yield();
        EXPECT_EQ(use->size, before);
        ++entered;
      }
    });
  }
  for (uint64_t round = 1; round <= 200 || entered < 100; ++round) {
    slot.open(reachOf(round));
    std::this_thread::yield();
    EXPECT_EQ(slot.close().size, round);
  }
  stop = true;
}

}  // namespace
}  // namespace hmc::pool
