#include "memory/cuda/even_blocks.h"

#include <gtest/gtest.h>

namespace hmc::cuda {
namespace {

constexpr size_t kGiB = size_t{1} << 30;

// Nothing is read or written there.
CopyBatch batchOf(const std::vector<Block>& blocks, size_t here, size_t there) {
  return {Region{nullptr, there, {DeviceKind::cuda, 0}},
          Region{nullptr, here, {DeviceKind::cuda, 0}},
          blocks,
          0,
          true,
          blocks.front().size};
}

TEST(EvenBlocks, keepEveryOffset) {
  for (size_t size : {size_t{1000}, 4 * kGiB, 5 * kGiB, 80 * kGiB}) {
    const size_t unit = size <= 4 * kGiB ? 1 : size <= 8 * kGiB ? 2 : 32;
    for (size_t count = 1; count < 12; ++count) {
      std::vector<Block> blocks;
      for (size_t i = 0; i < count; ++i)
        blocks.push_back({(size - 1) / unit * unit - i * unit, i * unit, 1});
      std::vector<Place> places(count);
      const auto shift = writePlaces(batchOf(blocks, size, 1), places.data());
      ASSERT_TRUE(shift.has_value());
      EXPECT_EQ(size_t{1} << *shift, unit);
      for (size_t i = 0; i < count; ++i) {
        EXPECT_EQ(size_t{places[i].local} << *shift, blocks[i].localOffset) << size << " " << i;
        EXPECT_EQ(size_t{places[i].remote} << *shift, blocks[i].remoteOffset) << size << " " << i;
      }
    }
  }
}

TEST(EvenBlocks, areLeftAsTheyAreWhereAnOffsetIsNoMultiple) {
  for (size_t count = 1; count < 12; ++count) {
    for (size_t odd = 0; odd < count; ++odd) {
      for (const Block& one : {Block{1, 0, 64}, Block{0, 31, 64}}) {
        std::vector<Block> blocks(count, {64, 128, 64});
        blocks[odd] = one;
        std::vector<Place> places(count);
        EXPECT_FALSE(writePlaces(batchOf(blocks, kGiB, 80 * kGiB), places.data()).has_value());
      }
    }
  }
}

TEST(EvenBlocks, areNoneWhereTheirSizeIsNotKnown) {
  const std::vector<Block> blocks{{0, 0, 64}};
  CopyBatch batch = batchOf(blocks, kGiB, kGiB);
  batch.each = 0;
  Place place{};
  EXPECT_FALSE(writePlaces(batch, &place).has_value());
}

}  // namespace
}  // namespace hmc::cuda
