#include "transfer/slot_blocks.h"

#include <gtest/gtest.h>

#include <array>

namespace hmc {
namespace {

constexpr size_t kSlot = 100;
using Seen = std::vector<std::array<size_t, 3>>;

Seen seen(std::span<const Block> blocks) {
  Seen all;
  for (const auto& [local, remote, size] : blocks) all.push_back({local, remote, size});
  return all;
}

TEST(SlotBlocks, lieOneBehindTheOther) {
  const std::vector<Block> list{{10, 500, 30}, {0, 0, 0}, {90, 300, 20}};
  const Pieces pieces(list);
  Cursor next(pieces);
  SlotBlocks slot;
  slot.take(next, kSlot);
  EXPECT_EQ(seen(slot.near()), (Seen{{10, 0, 30}, {90, 30, 20}}));
  EXPECT_EQ(seen(slot.far()), (Seen{{0, 500, 30}, {30, 300, 20}}));
  EXPECT_EQ(slot.bytes(), 50U);
  EXPECT_TRUE(next.atEnd());
}

TEST(SlotBlocks, fillTheSlotToTheLastByteAndGoOnInTheNext) {
  const std::vector<Block> list{{0, 1000, 60}, {200, 2000, 240}};
  const Pieces pieces(list);
  Cursor next(pieces);
  SlotBlocks slot;
  slot.take(next, kSlot);
  EXPECT_EQ(seen(slot.near()), (Seen{{0, 0, 60}, {200, 60, 40}}));
  slot.take(next, kSlot);
  EXPECT_EQ(seen(slot.near()), (Seen{{240, 0, 100}}));
  EXPECT_EQ(seen(slot.far()), (Seen{{0, 2040, 100}}));
  slot.take(next, kSlot);
  EXPECT_EQ(slot.bytes(), 100U);
  EXPECT_TRUE(next.atEnd());
}

TEST(SlotBlocks, areOneWhereTheyAreNeighboursOnASide) {
  const std::vector<Block> list{{0, 70, 10}, {10, 50, 10}, {30, 60, 10}};
  const Pieces pieces(list);
  Cursor next(pieces);
  SlotBlocks slot;
  slot.take(next, kSlot);
  EXPECT_EQ(seen(slot.near()), (Seen{{0, 0, 20}, {30, 20, 10}}));
  EXPECT_EQ(seen(slot.far()), (Seen{{0, 70, 10}, {10, 50, 20}}));
}

TEST(SlotBlocks, areNoMoreThanARequestTakes) {
  std::vector<Block> list;
  for (size_t i = 0; i < SlotBlocks::kMost + 10; ++i) list.push_back({i, 2 * i, 1});
  const Pieces pieces(list);
  Cursor next(pieces);
  SlotBlocks slot;
  slot.take(next, size_t{1} << 20);
  EXPECT_EQ(slot.near().size(), 1U);
  EXPECT_EQ(slot.far().size(), SlotBlocks::kMost);
  slot.take(next, size_t{1} << 20);
  EXPECT_EQ(slot.bytes(), 10U);
}

}  // namespace
}  // namespace hmc
